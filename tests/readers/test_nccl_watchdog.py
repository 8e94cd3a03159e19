"""Logs of NCCL's watchdogs, in the wordings of PyTorch 2.2 to 2.9, with the summary of torchrun."""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.facts import Certainty
from diagnosed_texts import diagnose

DEFAULT = "PG ID 0 PG GUID 0(default_pg)"
SENTENCE = "This is most likely caused by incorrect usages of collectives, e.g., wrong sizes used"
TORCHRUN = """\
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-07-09_17:05:45
  host      : node-a
  rank      : 0 (local_rank: 0)
  exitcode  : -6 (pid: 101)
  error_file: <N/A>
  traceback : Signal 6 (SIGABRT) received by PID 101
============================================================
"""


def timed_out(
    rank: int, number: int, enqueued: int, *, op: str = "ALLREDUCE", size: int = 9801523,
    group: str = DEFAULT, old: bool = False, stack: str = "", before: str = "",
) -> str:  # fmt: skip
    """A rank whose watchdog speaks: the collective, the group's status, the end."""
    head = f"{before}[rank{rank}]:[E709 17:05:38.162555850 ProcessGroupNCCL.cpp:632] "
    work = (
        f"WorkNCCL(SeqNum={number}, OpType={op}, NumelIn={size}, NumelOut={size}, Timeout(ms)=600000) "
        "ran for 600000 milliseconds before timing out."
    )
    words = f"last enqueued NCCL work: {enqueued}, last completed NCCL work: {number - 1}"
    at = f"Exception (either an error or timeout) detected by watchdog at work: {number}, {words}."
    if not old:
        at = (
            f" failure detected by watchdog at work sequence id: {number} PG status: last enqueued work: "
            f"{enqueued}, last completed work: {number - 1}"
        )
    trace = f"{head}Stack trace of the failed collective: \n{stack}\n" if stack else ""
    return (
        f"{head}[Rank {rank}] Watchdog caught collective operation timeout: {work}\n"
        f"{head}[{group} Rank {rank}] {at}\n{trace}"
        f"{head}[Rank {rank}] To avoid data inconsistency, we are taking the entire process down.\n"
        "terminate called after throwing an instance of 'c10::DistBackendError'\n"
        f"{before}[rank{rank}]:  what():  [{group} Rank {rank}] Process group watchdog thread terminated "
        f"with exception: [Rank {rank}] Watchdog caught collective operation timeout: {work}\n"
    )


def observed(rank: int, enqueued: int, *, before: str = "") -> str:
    """A rank that waits for nothing, and is asked for its dump by another."""
    head = f"{before}[rank{rank}]:[E709 17:05:38.262555850 ProcessGroupNCCL.cpp:1746] "
    head += f"[{DEFAULT} Rank {rank}] "
    return (
        f"{head}Observed flight recorder dump signal from another rank via TCPStore.\n"
        f"{head}Received a dump signal due to a collective timeout from  rank 0 and we will try our best to "
        f"dump the debug info. Last enqueued NCCL work: {enqueued}, last completed NCCL work: {enqueued}."
        f"{SENTENCE}\n"
    )


@pytest.mark.parametrize("before", ["", "(WorkerDict pid=3490362) ", "node-a: "])
def test_who_never_called_it_is_named_and_no_victim(tmp_path: Path, before: str) -> None:
    victims = "".join(timed_out(r, 133, 135, before=before) for r in (0, 1, 3))
    (found,) = diagnose(tmp_path, victims + observed(2, 132, before=before) + TORCHRUN)
    assert found.rule == "LOG007" and [w.rank for w in found.who] == [2]
    assert "rank 2 never called ALLREDUCE, collective 133" in found.summary
    assert "ranks 0-1 and 3 waited" in found.summary


@pytest.mark.parametrize(("old", "group"), [(False, DEFAULT), (True, DEFAULT), (True, "PG 1")])
def test_where_all_were_there_nobody_is_accused(tmp_path: Path, old: bool, group: str) -> None:
    text = "".join(timed_out(r, 808, 811, old=old, group=group) for r in range(4))
    (found,) = diagnose(tmp_path, text + TORCHRUN)
    assert found.rule == "LOG008" and found.who == ()
    assert "ranks 0-3 all waited" in found.summary


@pytest.mark.parametrize(
    ("group", "certainty"), [(DEFAULT, Certainty.CERTAIN), ("PG 3", Certainty.LIKELY)]
)
def test_another_size_is_told_with_both_lines_of_code(
    tmp_path: Path, group: str, certainty: Certainty
) -> None:
    library = "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py:2501"
    one, two = (
        f"#0 all_reduce from {library}\n#1 {name} from /home/u/train.py:{line}"
        for name, line in (("step", 41), ("evaluate", 77))
    )
    text = timed_out(0, 808, 811, group=group, stack=one)
    text += timed_out(1, 808, 811, group=group, size=12, stack=two)
    (found,) = diagnose(tmp_path, text)
    assert found.rule == "LOG009" and found.certainty is certainty
    assert "rank 0 ALLREDUCE of 9801523 elements; rank 1 ALLREDUCE of 12" in found.summary
    said = " ".join(e.observed for e in found.evidence)
    assert "train.py:41 in step" in said and "train.py:77 in evaluate" in said


def test_whose_gpu_is_behind_is_named(tmp_path: Path) -> None:
    text = timed_out(0, 133, 134) + timed_out(1, 132, 134) + timed_out(2, 133, 134)
    (found,) = diagnose(tmp_path, text + TORCHRUN)
    assert found.rule == "LOG007" and [w.rank for w in found.who] == [1]
    assert "did not get through ALLREDUCE, collective 132" in found.summary


def test_a_rank_that_raised_is_the_cause_and_nothing_carries_the_blame(tmp_path: Path) -> None:
    raised = (
        "[rank2]: Traceback (most recent call last):\n"
        '[rank2]:   File "/home/u/train.py", line 30, in <module>\n[rank2]:     main()\n'
        "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    )
    rules = {
        f.rule for f in diagnose(tmp_path, raised + timed_out(0, 133, 135) + timed_out(1, 133, 135))
    }
    assert "LOG008" not in rules and rules & {"EXIT002", "RES008", "RES007", "RES001", "RES002"}, (
        rules
    )


def test_one_rank_alone_is_a_victim_of_whom_nobody_knows(tmp_path: Path) -> None:
    found = diagnose(tmp_path, timed_out(0, 133, 135) + TORCHRUN)
    assert [f.rule for f in found] == ["LOG001"]
    lines = timed_out(0, 133, 135) + observed(1, 7).replace("0(default_pg)", "4(tp)")
    assert {f.rule for f in diagnose(tmp_path, lines)} == {"LOG001"}


LAG = "\n\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:"


@pytest.mark.parametrize(
    ("report", "who", "says"),
    [
        (
            "\n\t - To our best knowledge, ranks [1, 3] are the lagging ranks that caused this timeout. They "
            "never joined any collectives",
            [1, 3],
            "ranks 1 and 3 joined no collective",
        ),
        (
            LAG
            + "\n\t     [2] finished collective #132, but didn't join collective #133 (count from 1)",
            [2],
            "rank 2 did not call collective 133",
        ),
        (
            LAG + "\n\t   - [0, 1] joined but didn't finish collective #133 (count from 1)",
            [0, 1],
            "ranks 0-1 did not get through collective 133",
        ),
    ],
)
def test_the_report_on_ranks_out_of_step_comes_before_the_timeout(
    tmp_path: Path, report: str, who: list[int], says: str
) -> None:
    said = f"[rank0]:[E709 17:05:38.2 ProcessGroupNCCL.cpp:1800] {report}\n"
    first, *_ = diagnose(tmp_path, timed_out(0, 133, 133) + said)
    assert first.rule == "LOG001" and says in first.summary
    assert [w.rank for w in first.who] == who


def test_the_status_of_a_timeout_alone_is_told(tmp_path: Path) -> None:
    (finding,) = diagnose(
        tmp_path,
        "[rank4]:[E114 15:08:00.5 ProcessGroupNCCL.cpp:1709] [PG 0 (default_pg) Rank 4] Timeout at NCCL "
        "work: 175, last enqueued NCCL work: 175, last completed NCCL work: 174.\n",
    )
    assert finding.rule == "LOG001" and "collective 175" in finding.summary
