"""Stack dumps as people paste them: of several processes below headings, and in forms of other tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.facts import Diagnosis
from allaboard.formats.dumps.dump_headings import named_process
from allaboard.report.diagnosis import as_text
from allaboard.rules.engine.catalogue import load_catalogue

IN_REDUCE = """    all_reduce (torch/distributed/distributed_c10d.py:1316)
    train_step (trainer.py:885)
    main (train.py:165)
    <module> (train.py:201)
"""
IN_DATA = """    wait (threading.py:302)
    get (queue.py:170)
    __next__ (batches.py:648)
    main (train.py:160)
    <module> (train.py:201)
"""
SITE = "/venv/lib/python3.10/site-packages"


def dumped(folder: Path, text: str, name: str = "dump.txt") -> Diagnosis:
    file = folder / name
    file.write_text(text)
    return diagnose_paths([file], load_catalogue())


def spied(pid: int, frames: str) -> str:
    head = f"Process {pid}: python train.py\nPython v3.10.12 (/usr/bin/python3.10)\n\n"
    return f'{head}Thread {pid} (idle): "MainThread"\n{frames}\n'


@pytest.mark.parametrize(
    "heading",
    [
        "rank {0}:",
        "The stack for rank{0}",
        "=== rank {0} ===",
        "# process {0}",
        "Global rank: {0}",
        "**Rank {0}**\n```",
        "### rank {0}\n\n<details>\n\n```",
    ],
)
@pytest.mark.parametrize("has_head", [True, False])
def test_a_heading_names_the_rank_of_the_dump_below_it(
    tmp_path: Path, heading: str, has_head: bool
) -> None:
    parts = []
    for rank, frames in enumerate((IN_DATA, IN_REDUCE, IN_REDUCE)):
        whole = spied(1, frames)
        part = whole if has_head else whole[whole.index("Thread ") :]
        parts.append(f"{heading.format(rank)}\n{part}")
    (finding,) = dumped(tmp_path, "\n".join(parts)).findings
    assert finding.rule == "DUMP001"
    assert [w.rank for w in finding.who] == [0]
    assert "ranks 1-2 wait in a collective (all_reduce)" in finding.summary


def test_pods_that_all_have_pid_1_are_told_apart_by_their_headings(tmp_path: Path) -> None:
    text = "".join(
        f"=== llm-worker-{n} ===\n{spied(1, frames)}"
        for n, frames in enumerate((IN_REDUCE, IN_REDUCE, IN_DATA))
    )
    loop = '$ for p in 0 1 2; do echo "=== llm-worker-$p ==="; kubectl exec llm-worker-$p -- py-spy dump\n'
    (finding,) = dumped(tmp_path, loop + text).findings
    assert [(w.host, w.pid) for w in finding.who] == [("llm-worker-2", 1)]
    assert "on each of llm-worker-0, llm-worker-1, llm-worker-2: allaboard diagnose" in finding.fix


def test_dumps_without_heads_and_headings_are_of_as_many_processes(tmp_path: Path) -> None:
    heads = [spied(7, frames)[len(spied(7, "")) - 1 :] for frames in (IN_REDUCE, IN_DATA)]
    text = "".join(
        f'Thread 0x7F{n}A6E7C01740 (idle): "MainThread"\n{h}\n' for n, h in enumerate(heads)
    )
    found = dumped(tmp_path, text)
    assert [f.rule for f in found.findings] == ["DUMP001"]
    assert "waits in a collective" in found.findings[0].summary


@pytest.mark.parametrize(
    ("heading", "named"),
    [
        (
            "$ kubectl exec -it llm-worker-2 -c main -- py-spy dump --pid 1",
            ("llm-worker-2", -1, -1),
        ),
        ("$ kubectl -n train exec llm-worker-2 -- py-spy dump --pid 1", ("llm-worker-2", -1, -1)),
        ("ssh gpu07 py-spy dump --pid 4411", ("gpu07", -1, -1)),
        ("--- 10.0.0.5 ---", ("10.0.0.5", -1, -1)),
        ("on node-3:", ("node-3", -1, -1)),
        ("ps 0:", ("ps 0", -1, -1)),
        ("chief", ("chief 0", -1, -1)),
        ("local rank 2", ("", -1, 2)),
        ("GPU 3:", ("", -1, 3)),
        ("Rank 3 (pid 4121):", ("", 3, -1)),
        ("Process 1 timed out with traceback: ", ("", 1, -1)),
        ("gpu02 | CHANGED | rc=0 >>", ("gpu02", -1, -1)),
    ],
)
def test_a_heading_names_one_process(heading: str, named: tuple[str, int, int]) -> None:
    label = named_process(heading)
    assert label is not None
    assert (label.host, label.rank, label.local_rank) == named


@pytest.mark.parametrize(
    "line",
    [
        "dumps of rank 1 and rank 2",
        "node rank 1",
        "tp rank 3",
        "Process 4242: python train.py",
        "==== Thread dump ====",
        "INFO step 100 loss 0.3",
        "python3.10",
        "    rank 3",
    ],
)
def test_what_names_no_process_or_several_is_no_heading(line: str) -> None:
    assert named_process(line) is None


def listed(*frames: str) -> str:
    """Frames with their source, the outermost call first."""
    return "\n".join(f"{frame}\n    pass" for frame in frames)


MAIN_FRAMES = (
    '  File "train.py", line 310, in <module>',
    '  File "train.py", line 288, in main',
    f'  File "{SITE}/tensorflow/python/client/session.py", line 1409, in _call_tf_sessionrun',
)
OTHER_FRAMES = (
    '  File "/usr/lib/python3.10/threading.py", line 884, in _bootstrap',
    '  File "/usr/lib/python3.10/threading.py", line 551, in wait',
)


@pytest.mark.parametrize(
    "head",
    [
        "# ThreadID: {0}",
        "Thread {0}",
        "Thread 0x7f5a{0}",
        "--- Thread {0} ---",
        "Stack of thread {0}:",
    ],
)
def test_a_dump_of_the_programs_own_is_read_from_its_main_thread(tmp_path: Path, head: str) -> None:
    text = (
        f"no progress for 600 s, dumping all threads\n\n{head.format(140513921)}\n"
        f"{listed(*OTHER_FRAMES)}\n\n{head.format(140516003)}\n{listed(*MAIN_FRAMES)}\n"
    )
    found = dumped(tmp_path, text)
    assert not found.findings
    assert "in a training step at train.py:288 in main" in as_text(found)


def test_pystack_shows_who_is_elsewhere(tmp_path: Path) -> None:
    def pystack(thread: int, *frames: str) -> str:
        head = f"Traceback for thread {thread} (python3.10) [] (most recent call last):"
        native = '    (C) File "???", line 0, in _start (python3.10)'
        return "\n".join([head, native, *(f"    (Python) {f}\n        pass" for f in frames)])

    saves = pystack(
        812,
        'File "train.py", line 120, in validate',
        f'File "{SITE}/torch/serialization.py", line 1114, in _save',
    )
    waits = pystack(
        813,
        'File "train.py", line 192, in main',
        f'File "{SITE}/torch/distributed/distributed_c10d.py", line 4164, in barrier',
    )
    for rank, text in enumerate((saves, waits)):
        (tmp_path / f"rank{rank}.txt").write_text(text)
    (finding,) = diagnose_paths([tmp_path], load_catalogue()).findings
    assert finding.rule == "DUMP001"
    assert [w.rank for w in finding.who] == [0]
    assert "train.py:120 in validate" in finding.summary


@pytest.mark.parametrize(
    "last_line",
    ["raise TimeoutError(f'failed to get a batch')", "logger.error('Cannot reach the peer')"],
)
def test_source_lines_of_a_stack_are_no_words_of_the_program(
    tmp_path: Path, last_line: str
) -> None:
    frames = listed(*MAIN_FRAMES).removesuffix("pass") + last_line
    assert not dumped(tmp_path, f"Thread 140513921\n{frames}\n").findings


@pytest.mark.parametrize(
    ("text", "who", "words"),
    [
        (
            "Not all ranks joining collective, sequence number: 31117\ninternal record id: 31116\n"
            "group info: 0:default_pg\ncollective: nccl:all_reduce\nmissing ranks: {3, 4, 5, 6, 7}\n"
            "expected ranks: {0, 1, 2, 3, 4, 5, 6, 7}\ncollective state: scheduled\n"
            f"collective stack trace: \n all_reduce at {SITE}/torch/distributed/distributed_c10d.py:2707\n"
            "sync_buffers at /work/models.py:650\n",
            [3, 4, 5, 6, 7],
            "ranks 3-7 did not join all_reduce, number 31117 of group 0:default_pg, called at models.py:650",
        ),
        (
            "Not all ranks joining collective 5 at entry 4\ngroup info: 0:default_pg\n"
            "collective: nccl:all_reduce\nmissing ranks: {1}\nexpected ranks: 2\n",
            [1],
            "rank 1 did not join all_reduce, number 5 of group 0:default_pg",
        ),
        (
            "Not all ranks joining collective for group 0:default_pg collective nccl:broadcast  Missing "
            "ranks are {0}  [[2]] [[2]] 4 scheduled\n",
            [0],
            "rank 0 did not join broadcast of group 0:default_pg",
        ),
        (
            "Collective sequence number: 12 has errors\ngroup info: 0:default_pg\n"
            "collective: nccl:all_gather\nerror msg: Culprit rank 5; Error type: COLLECTIVE_TYPE_MISMATCH, "
            "Expected collective type: 'all_gather' does not match found collective type: 'all_reduce'\n",
            [5],
            "rank 5 called all_reduce where the first rank called all_gather, number 12",
        ),
    ],
)
def test_the_report_of_pytorchs_own_analyser_is_read(
    tmp_path: Path, text: str, who: list[int], words: str
) -> None:
    (finding,) = dumped(tmp_path, text).findings
    assert finding.rule == "DUMP012"
    assert [w.rank for w in finding.who] == who
    assert words in finding.summary


def test_a_report_without_errors_is_none(tmp_path: Path) -> None:
    text = (
        "loaded 8 files in 0.31s\nNo errors found for this collective entry, There could be some other "
        "reasons why we see collective timeout.\n"
    )
    assert not dumped(tmp_path, text).findings


def test_lines_with_pytorchs_label_are_a_dump_of_that_rank(tmp_path: Path) -> None:
    text = "".join(
        f"[rank{rank}]: {line}\n"
        for rank, (call, place) in enumerate((("barrier", 50), ("all_gather", 71)))
        for line in (
            "Current thread 0x00007f8ab3d3f740 (most recent call first):",
            f'  File "{SITE}/torch/distributed/distributed_c10d.py", line 3600 in {call}',
            f'  File "/app/t.py", line {place} in main',
        )
    )
    (finding,) = dumped(tmp_path, text).findings
    assert finding.rule == "DUMP004"
    assert "rank 0 is in barrier at t.py:50 in main, rank 1 is in all_gather" in finding.summary


def test_a_server_that_serves_is_waited_for_by_nobody(tmp_path: Path) -> None:
    coordinator = """    wait (threading.py:320)
    join (tensorflow/python/distribute/coordinator/cluster_coordinator.py:1245)
    train (train.py:88)
"""
    server = """    join (tensorflow/python/training/server_lib.py:233)
    run_ps (train.py:30)
"""
    found = dumped(tmp_path, f"chief:\n{spied(88, coordinator)}\nps 0:\n{spied(99, server)}")
    assert not found.findings
    assert "If the job has more ranks, dump those" in found.conclusion


def test_the_names_that_pdsh_puts_before_lines_tell_hosts_apart(tmp_path: Path) -> None:
    text = "\n".join(
        f"gpu0{n}: {line}"
        for n, frames in enumerate((IN_REDUCE, IN_REDUCE, IN_DATA))
        for line in spied(700 + n, frames).rstrip().split("\n")
    )
    (finding,) = dumped(tmp_path, text).findings
    assert [(w.host, w.pid) for w in finding.who] == [("gpu02", 702)]


def test_stacks_of_gdb_stand_below_their_pids(tmp_path: Path) -> None:
    text = "".join(
        f"=== pid {pid} ===\n[Thread debugging using libthread_db enabled]\n"
        "#0  0x00007f87 in __GI___poll () from /lib64/libc.so.6\n"
        f"#1  0x00007f89 in c10d::ProcessGroupGloo::{call}() () from /venv/libtorch_cpu.so\n\n"
        for pid, call in ((4101, "allreduce"), (4102, "barrier"))
    )
    (finding,) = dumped(tmp_path, text).findings
    assert finding.rule == "DUMP004"
    assert (
        "pid 4101 (rank unknown) is in all_reduce, pid 4102 (rank unknown) is in" in finding.summary
    )
