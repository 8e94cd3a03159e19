"""A worker waits for a program that it started, while the others wait for the worker.

## Why it matters
An upload, a copy, a `git` or a `sleep` in `subprocess.run`: meanwhile the worker is in no collective, and its
peers are blocked. Whether the program will end by itself cannot be seen from outside; a server may be working
for it. So this is reported as a wait, and the job is not ended for it before `--hang-after`. A program that
uses no CPU and moves no bytes for a minute is reported as a hang (HANG002).

A process that was forked after native code had started threads (OpenMP below PyTorch and NumPy) is an error,
too, if it waits for one of these threads: a fork copies the calling thread alone.

A program whose output nobody reads is an error: `Popen(stdout=PIPE)` with `wait()`, or `join()` before the
queue is read. A pipe holds 64 KiB; when it is full, the program waits for its reader, and the worker for the
program's end.

## What to do
If the pipe is full: `communicate()` reads while it waits; a queue is to be read before `join()`. Otherwise
set a limit on the call (`timeout=`), let all ranks wait at a barrier whose timeout is long enough, or run the
program beside the training (`subprocess.Popen`, and `wait` later).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.stacks.example_awaited import example_awaited
from allaboard.analysis.stalls.child_process import (
    awaits_child,
    child_command,
    child_evidence,
    describe_child,
    lone_waiter_evidence,
    unread_child,
)
from allaboard.analysis.stalls.expected_pauses import is_in_short_pause
from allaboard.analysis.stalls.stall import (
    IDLE_CORES,
    MOVING_BYTES_PER_S,
    find_stall,
    is_settled_stack,
    waiting_evidence,
)
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Frame, JobView, Member, Severity, Spent
from allaboard.facts.samples import USER, sample_member, sample_stack, stalled_job

MIN_WAIT_S = 4.0
"""Seconds that the others must have waited: short waits, such as one in every epoch, are not reported."""


def check(view: JobView) -> Iterator[Claim]:
    stall = find_stall(view)
    if stall is None or not stall.waiting or view.now - stalled_since(view) < MIN_WAIT_S:
        return
    for absent_member in stall.absent:
        if (
            awaits_child(absent_member)
            and is_settled_stack(absent_member.stack)
            and not absent_member.is_stopped
            and not is_in_short_pause(view, absent_member)
        ):
            yield _claim(view, absent_member, waiting_evidence(stall))


def _claim(view: JobView, member: Member, peers_evidence: Evidence) -> Claim:
    assert member.stack is not None
    frame = member.stack.main_frame
    activity = _describe_activity(member)
    unread = unread_child(member)
    full_pipe = ", whose output it does not read: the pipe is full" if unread else ""
    return Claim(
        summary=f"{member.who.name} waits for {describe_child(member)} at {frame}{full_pipe}; the others "
        "wait for it",
        who=(member.who,),
        evidence=(
            Evidence(f"there for at least {member.stack.span:.0f} s", member.stack.by),
            *child_evidence(member),
            *_full_pipe_evidence(member, unread),
            Evidence(activity or "no CPU and no I/O so far", "/proc"),
            peers_evidence,
            Evidence(frame.text or "source not readable", f"{frame.file}:{frame.line}"),
        ),
        fix=child_command(view, member)
        or f"set a timeout for what {frame.function} calls at {frame.file}:{frame.line}",
        severity=Severity.ERROR
        if (unread or lone_waiter_evidence(member)) and not activity
        else Severity.INFO
        if activity
        else Severity.WARNING,
        certainty=Certainty.LIKELY if unread else Certainty.CERTAIN,
        since=stalled_since(view),
    )


def _full_pipe_evidence(member: Member, unread: int) -> tuple[Evidence, ...]:
    if not unread:
        return ()
    observed = f"process {unread} waits to write into a pipe that only {member.who.name} can read"
    return (Evidence(observed, f"/proc/{unread}/task/*/syscall"),)


def _describe_activity(member: Member) -> str:
    """Return what it and its child process do, or "" if no activity is visible."""
    if member.cpu >= IDLE_CORES:
        return f"active, {member.cpu * 100:.0f} % of a core"
    moved = max(member.io, member.traffic)
    return (
        f"active, {moved / 1e3:,.0f} kB/s read, written or sent"
        if moved >= MOVING_BYTES_PER_S
        else ""
    )


_WAIT = Frame("/usr/lib/python3.11/subprocess.py", 1264, "wait")
_CHILD = msgspec.structs.replace(
    sample_stack(_WAIT, USER), children=((4711, "/usr/bin/unzip data.zip"),)
)
_UNREAD = msgspec.structs.replace(_CHILD, unread_child=4711)
_COMMUNICATES = msgspec.structs.replace(
    _UNREAD, frames=(_WAIT, Frame("/usr/lib/python3.11/subprocess.py", 1209, "communicate"), USER)
)
_FORKED = msgspec.structs.replace(
    sample_stack(Frame("/usr/lib/python3.11/multiprocessing/popen_fork.py", 27, "poll"), USER),
    children=((4711, "python train.py"),),
    loaders=((4711, Frame("/home/u/train.py", 20, "tokenize", "with lock:")),),
)
_SYSTEM = Frame("/home/u/train.py", 9, "fetch", "os.system('rsync -a data: .')")
_WAITPID = Frame("/home/u/train.py", 41, "train", "os.waitpid(pid, 0)")
_LONE = msgspec.structs.replace(
    sample_stack(_WAITPID),
    children=((4711, "python train.py"),),
    loaders=((4711, Frame("/home/u/train.py", 20, "snapshot", "w = w @ w.T")),),
    lone_waiters=(4711,),
)
_CHILD_SUMMARY = (
    "worker 1 waits for its child process 4711 (unzip data.zip) at train.py:41 in train; the others wait "
    "for it"
)

RULE = Rule(
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "a worker has waited for 7 seconds for an idle child process": (
            example_awaited(sample_member(1, stack=_CHILD), progress_at=93.0),
            _CHILD_SUMMARY,
        ),
        "a worker waits for a child process whose output it does not read": (
            example_awaited(sample_member(1, stack=_UNREAD), progress_at=93.0),
            "worker 1 waits for its child process 4711 (unzip data.zip) at train.py:41 in train, whose "
            "output it does not read: the pipe is full; the others wait for it",
        ),
        "a worker waits for a process that was forked while a thread held a lock": (
            example_awaited(sample_member(1, stack=_FORKED), progress_at=93.0),
            "worker 1 waits for its child process 4711 (python train.py, at train.py:20 in tokenize) at "
            "train.py:41 in train; the others wait for it",
        ),
        "a worker waits for a process that it forked, whose native code waits for a thread": (
            example_awaited(sample_member(1, stack=_LONE), progress_at=93.0),
            "worker 1 waits for its child process 4711 (python train.py, at train.py:20 in snapshot) at "
            "train.py:41 in train; the others wait for it",
        ),
        "a worker reads the output of its child process while it waits": (
            example_awaited(sample_member(1, stack=_COMMUNICATES), progress_at=93.0),
            _CHILD_SUMMARY,
        ),
        "a worker waits for a child process that uploads data": (
            example_awaited(sample_member(1, stack=_CHILD, traffic=3e5), progress_at=93.0),
            _CHILD_SUMMARY,
        ),
        "a worker waits in `os.system`": (
            example_awaited(sample_member(1, stack=sample_stack(_SYSTEM)), progress_at=93.0),
            "worker 1 waits for a child process at train.py:9 in fetch; the others wait for it",
        ),
    },
    silent_on={
        "a worker has waited for a child process for 3.5 seconds": example_awaited(
            sample_member(1, stack=_CHILD), progress_at=96.5
        ),
        (
            "a worker waits for a child process in its checkpoint, which has a status of its own"
        ): example_awaited(
            sample_member(1, stack=_CHILD, spent=Spent(now="checkpoint")), progress_at=93.0
        ),
        "all workers wait for child processes, and none for another worker": stalled_job(
            *(sample_member(n, stack=_CHILD) for n in range(3)), progress_at=93.0
        ),
        "a worker stands in its own code, and waits for no child process": example_awaited(
            sample_member(1, stack=sample_stack(USER)), progress_at=93.0
        ),
    },
    passes=True,
    drill=("waits-for-a-child", "child-unread", "forked-native"),
)
