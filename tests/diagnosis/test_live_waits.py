"""What is known of live processes beside their stacks: how long they wait, and what ended their programs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest

from allaboard.analysis.stalls.examined_duration import shortest_wait
from allaboard.diagnosis.live.exited_processes import final_exceptions, find_final_exception
from allaboard.diagnosis.live.live_diagnosis import diagnose_processes
from allaboard.diagnosis.live.starvation import has_run_in_wait
from allaboard.facts import (
    Diagnosis,
    Frame,
    HostLook,
    Member,
    Phase,
    Present,
    QueueTime,
    Raised,
    Stack,
    Who,
)

TF = "/v/lib/python3.11/site-packages/tensorflow/python"
OWN = Frame("/home/u/train.py", 63, "main", "loss = train_step(next(batches))")
STEP = (Frame(f"{TF}/eager/execute.py", 53, "quick_execute"), OWN)
NEXT = (Frame(f"{TF}/data/ops/iterator_ops.py", 826, "_next_internal"), OWN)
READS = (Frame("/v/lib/python3.11/site-packages/jax/_src/array.py", 682, "_value"), OWN)
SPINS = (Frame("/home/u/train.py", 24, "skip_broken", "n ^= 1"), OWN)
GENERATOR = (
    Frame("/home/u/train.py", 24, "read_samples", "n ^= 1"),
    Frame(f"{TF}/ops/script_ops.py", 147, "__call__"),
)
ENDS = (Frame("/usr/lib/python3.11/threading.py", 1590, "_shutdown"),)


def worker(
    rank: int,
    frames: tuple[Frame, ...],
    blocked_s: float = 0.0,
    cpu: float = 0.0,
    steps_on: bool = False,
    raised: Raised | None = None,
    fed_by: tuple[Frame, ...] = (),
) -> Present:
    stack = Stack(frames=frames, taken_at=10.0, samples=7, span=2.4, fed_by=fed_by)
    member = Member(
        who=Who(index=rank, rank=rank, host="h", pid=100 + rank),
        worker=rank,
        phase=Phase.TRAINING,
        stack=stack,
        cpu=cpu,
        raised=raised,
        framework="tensorflow",
    )
    return Present(member=member, blocked_s=blocked_s, steps_on=steps_on)


def answer(*present: Present) -> Diagnosis:
    return diagnose_processes([HostLook(host="h", now=12.0, present=present)], look_count=2)


WAITS = worker(0, STEP, blocked_s=70.0)


def test_a_loop_for_which_the_others_have_waited_for_a_minute_is_named() -> None:
    for stuck in (worker(1, SPINS, cpu=1.0), worker(1, NEXT, cpu=1.0, fed_by=GENERATOR)):
        (finding,) = answer(WAITS, stuck).findings
        assert (finding.rule, finding.who[0].rank) == ("HANG002", 1)
        assert "train.py:24" in finding.summary


@pytest.mark.parametrize("blocked_s", [0.0, 3.0, 50.0])
def test_a_busy_worker_for_which_they_wait_since_a_moment_is_said_to_run(blocked_s: float) -> None:
    waits = worker(0, STEP, blocked_s=blocked_s)
    for busy in (worker(1, SPINS, cpu=1.0), worker(1, NEXT, cpu=1.0, fed_by=GENERATOR)):
        told = answer(waits, busy)
        assert not told.findings
        assert "worker 0 waits for worker 1 (train.py:24 in" in told.conclusion
        assert ("have done so for 50 s" in told.conclusion) is (blocked_s == 50.0)


def test_workers_that_go_from_step_to_step_do_not_wait_for_each_other() -> None:
    both = [worker(r, STEP, cpu=0.18) for r in range(2)]
    assert [f.rule for f in answer(*both).findings] == ["HANG006"]
    moving = [msgspec.structs.replace(p, steps_on=True) for p in both]
    assert not answer(*moving).findings


def test_only_waits_within_a_training_tell_how_long_a_job_stands() -> None:
    assert (
        shortest_wait([WAITS, worker(1, STEP, blocked_s=61.0), worker(2, SPINS, cpu=1.0)]) == 61.0
    )
    assert shortest_wait([WAITS, worker(1, STEP)]) == 0.0, "of one it is not known"
    server = worker(3, (Frame(f"{TF}/training/server_lib.py", 1, "join"), OWN), blocked_s=9e3)
    starts = worker(3, (Frame(f"{TF}/eager/context.py", 1, "ensure_initialized"), OWN), 9e3)
    assert shortest_wait([server, starts]) == 0.0


@pytest.mark.parametrize(
    ("frames", "ran_s", "runs", "has_run"),
    [
        (STEP, 0.002, 1, True),
        (STEP, 0.0, 0, False),
        (SPINS, 0.5, 1, False),
        (READS, 0.0006, 10, False),  # it looks now and then whether its wait is over
        (READS, 0.02, 10, True),
    ],
)
def test_who_has_run_in_a_wait(
    frames: tuple[Frame, ...], ran_s: float, runs: int, has_run: bool
) -> None:
    stack = Stack(frames=frames, taken_at=1.0)
    before, after = QueueTime(5.0, 1.0, 100), QueueTime(5.0 + ran_s, 1.0, 100 + runs)
    assert has_run_in_wait(stack, before, after) is has_run
    assert not has_run_in_wait(stack, None, after)


TRACEBACK = """\
worker1 epoch 0 loss 0.976
Traceback (most recent call last):
  File "/home/u/train.py", line 83, in <module>
    main()
  File "/home/u/train.py", line 71, in main
    raise ValueError("label 11 is out of range")
ValueError: label 11 is out of range
"""
LABELLED = "".join(f"[rank1]: {line}\n" for line in TRACEBACK.splitlines()[1:])


def test_what_ended_the_program_of_a_process_that_a_thread_keeps() -> None:
    raised = find_final_exception(TRACEBACK, 1, is_shared=False)
    assert raised is not None and raised.message == "label 11 is out of range"
    (finding,) = answer(WAITS, worker(1, ENDS, raised=raised)).findings
    assert finding.rule == "EXIT002" and finding.who[0].rank == 1
    assert finding.summary == "worker 1 raised ValueError at train.py:71 in main"


@pytest.mark.parametrize(
    ("text", "rank", "is_shared", "is_known"),
    [
        (TRACEBACK, 1, True, False),  # of whom is it?
        (LABELLED, 1, True, True),
        (LABELLED, 0, True, False),
        (LABELLED, -1, True, False),
        (TRACEBACK + "epoch 1 loss 0.9\nepoch 2 loss 0.8\n", 1, False, False),  # it was caught
        ("done\n", 1, False, False),
    ],
)
def test_only_its_own_last_words_tell_what_ended_a_process(
    text: str, rank: int, is_shared: bool, is_known: bool
) -> None:
    assert (find_final_exception(text, rank, is_shared=is_shared) is not None) is is_known


@pytest.mark.parametrize(
    ("stack", "framework", "is_known"),
    [
        (Stack(frames=ENDS, taken_at=1.0), "tensorflow", True),
        (None, "tensorflow", True),  # no Python is left to run
        (None, "", False),  # it is at its start, and the file is that of the run before
        (Stack(frames=STEP, taken_at=1.0), "tensorflow", False),  # it has caught the exception
    ],
)
def test_only_a_process_at_its_end_has_ended_by_what_it_printed(
    tmp_path: Path, stack: Stack | None, framework: str, is_known: bool
) -> None:
    output = tmp_path / "worker-1.log"
    output.write_text(TRACEBACK)
    with output.open("ab") as errors:
        process = subprocess.Popen(["sleep", "60"], stderr=errors)
    try:
        pid = process.pid
        found = final_exceptions({pid: stack}, {pid: 1}, {pid: framework}, 5.0)
        assert [r.type for r in found.values()] == (["ValueError"] if is_known else [])
    finally:
        process.kill()
        process.wait()
