"""Logs of several processes: who raised, and whether that is proven."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import pytest

from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.facts import Certainty, Finding
from allaboard.rules.engine.catalogue import load_catalogue

SAMPLES = Path(__file__).parents[1] / "readers" / "samples"
RAISED = """Traceback (most recent call last):
  File "/h/train.py", line 20, in main
ValueError: bad label
"""


def told(tmp_path: Path, text: str | bytes, name: str = "job.log") -> tuple[Finding, ...]:
    file = tmp_path / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return diagnose_paths([file], load_catalogue()).findings


@pytest.mark.parametrize("sample", ["srun_labelled", "mpirun_tagged"])
def test_labelled_output_of_a_launcher_names_who_raised(sample: str) -> None:
    # Recorded: srun -l, and mpirun --tag-output of Open MPI 4.1.4; PyTorch 2.13.0 with gloo.
    (found,) = diagnose_paths([SAMPLES / sample], load_catalogue()).findings
    assert (found.rule, [w.rank for w in found.who]) == ("EXIT002", [2])
    assert "ValueError at boom.py:6" in found.summary and found.certainty is Certainty.CERTAIN
    assert any("ranks 1, 3 and 0 failed as a consequence" in e.observed for e in found.evidence)


def test_interleaved_tracebacks_are_read_apart_with_their_lines(tmp_path: Path) -> None:
    ranks = (
        [
            "Traceback (most recent call last):",
            '  File "/h/train.py", line 31, in a',
            "ValueError: x",
        ],
        [
            "Traceback (most recent call last):",
            '  File "/h/train.py", line 44, in b',
            "KeyError: 'q'",
        ],
    )
    mixed = [f"[rank{r}]: {lines[n]}" for n in range(3) for r, lines in enumerate(ranks)]
    found = told(tmp_path, "\n".join(mixed) + "\n")
    assert [f.summary for f in found] == [
        "worker 0 raised ValueError at train.py:31 in a",
        "worker 1 raised KeyError at train.py:44 in b",
    ]
    assert [f.fix.rpartition(":")[2] for f in found] == ["1", "2"]


def waited(member: int, prefix: str = "") -> str:
    work = "WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=1000)"
    return (
        f"{prefix}[E ProcessGroupNCCL.cpp:474] [Rank {member}] Watchdog caught collective operation "
        f"timeout: {work} ran for 1001 milliseconds before timing out.\n"
    )


@pytest.mark.parametrize("name", ["rank_{}.log", "worker-{}.out", "r{}/rank{}.err"])
def test_a_number_within_a_group_is_not_the_rank_of_a_log(tmp_path: Path, name: str) -> None:
    # Ranks 2 and 3 are 0 and 1 of their group; it is rank 0 and 1 that did not wait.
    for rank, text in enumerate(("step\n", "step\n", waited(0), waited(1))):
        file = tmp_path / name.format(rank, rank)
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    (found,) = diagnose_paths([tmp_path], load_catalogue()).findings
    assert found.rule == "LOG001" and [w.rank for w in found.who] == [0, 1]
    assert any(e.observed == "written by ranks 2-3" for e in found.evidence)


def test_the_number_in_a_files_name_gives_way_to_torchs_own_prefix(tmp_path: Path) -> None:
    one = "".join(waited(r - 8, f"[rank{r}]:") for r in (9,))
    two = "".join(waited(r - 8, f"[rank{r}]:") for r in (10, 11))
    (tmp_path / "worker-3.log").write_text(one)
    (tmp_path / "worker-4.log").write_text(two)
    (found,) = diagnose_paths([tmp_path], load_catalogue()).findings
    assert not found.who, "neither 3 nor 4 is a rank here"
    assert any(e.observed == "written by ranks 9-11" for e in found.evidence)


def test_a_job_that_logged_what_it_caught_and_ended_well_is_not_accused() -> None:
    # Recorded: logging.exception of two ranks, and what they printed at their end.
    assert diagnose_paths([SAMPLES / "caught_and_logged"], load_catalogue()).findings == ()


@pytest.mark.parametrize(
    ("before", "after", "certainty"),
    [
        ("step 1\n", "", Certainty.CERTAIN),
        ("step 1\n", "srun: error: h2: task 2: Exited with exit code 1\n", Certainty.CERTAIN),
        ("step 1\n", "terminate called without an active exception\n", Certainty.CERTAIN),
        # Python writes what was buffered after the traceback: this may be either.
        ("", "step 1\nstep 2\n", Certainty.LIKELY),
        ("ERROR:root:could not read it\n", "", Certainty.LIKELY),
        ("ERROR:root:could not read it\n", "step 2\n", None),
        ("", "\n==== restarting ====\nstep 1\ntraining finished, all good\n", None),
        ("", "step of some length\n" * 390 + "and " * 4000 + "\n", None),
    ],
)
def test_a_traceback_is_proof_only_where_its_process_says_no_more(
    before: str, after: str, certainty: Certainty | None, tmp_path: Path
) -> None:
    found = [f.certainty for f in told(tmp_path, before + RAISED + after) if f.rule == "EXIT002"]
    assert found == ([] if certainty is None else [certainty])


def test_what_torch_s_hook_wrote_is_proof_whatever_follows(tmp_path: Path) -> None:
    hooked = "".join(f"[rank1]: {line}\n" for line in RAISED.splitlines())
    (found,) = told(tmp_path, hooked + "step 2\nfinished\n")
    assert found.certainty is Certainty.CERTAIN


def test_a_chained_exception_of_an_unlabelled_log_is_one_finding(tmp_path: Path) -> None:
    chained = "\nThe above exception was the direct cause of the following exception:\n\n"
    last = RAISED.replace("ValueError: bad label", "RuntimeError: bad").replace("20", "24")
    (found,) = told(tmp_path, RAISED + chained + last)
    assert found.summary == "a process of job.log raised RuntimeError at train.py:24 in main"
    assert "after ValueError: bad label at train.py:20" in found.evidence[0].observed


def test_who_raised_in_answer_to_a_lost_peer_did_not_begin_it(tmp_path: Path) -> None:
    lost = RAISED.replace(
        "ValueError: bad label", "RuntimeError: Connection closed by peer [10.0.0.5]:1"
    )
    chained = "\nDuring handling of the above exception, another exception occurred:\n\n"
    found = told(tmp_path, lost + chained + RAISED)
    assert "EXIT002" not in [f.rule for f in found]


@pytest.mark.parametrize(
    "data", [gzip.compress(RAISED.encode()), RAISED.encode("utf-16"), RAISED.encode("utf-8-sig")]
)
def test_a_packed_log_and_other_encodings_are_read(data: bytes, tmp_path: Path) -> None:
    (found,) = told(tmp_path, data, "rank2.log")
    assert found.summary == "worker 2 raised ValueError at train.py:20 in main"
    assert told(tmp_path, data[: len(data) // 3], "torn.log") == ()


def test_evidence_is_where_it_was_read(tmp_path: Path) -> None:
    crash = "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f0 (most recent call first):\n"
    (found,) = told(tmp_path, crash + '  File "/h/train.py", line 12 in step\n')
    assert {e.origin for e in found.evidence} == {f"{tmp_path / 'job.log'}:1"}


def test_a_log_of_nothing_but_tracebacks_is_read_in_time(tmp_path: Path) -> None:
    began = time.process_time()
    told(tmp_path, "".join(f"{RAISED}step {n}\n" for n in range(10_000)))
    assert time.process_time() - began < 10
