"""A program waits for a process that has failed, or that waits for the program to read its queue.

## Why it matters
A queue of multiprocessing does not know who should fill it. If an actor fails, its traceback is printed, and
whoever waits for its next item waits for ever: `Queue.get()` gets no error, nor does the `join()` of another
process. Nobody reads the exit code of the process that failed.

The other case: a queue is full, or the pipe below it, and the process that should read it waits in `join()`
for the end of the one that fills it.

Reported if all processes of the program stand still, and no member of a distributed job waits for another
one: then HANG005 or HANG018 says the same of the member that the others wait for.

## What to do
Read the traceback of the failed process in the output. Start the processes with
`concurrent.futures.ProcessPoolExecutor` or `torch.multiprocessing.spawn`, which raise its exception; or wait
with `get(timeout=...)` and look at `Process.exitcode`. Read a queue before the `join()`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

import msgspec

from allaboard.analysis.failures.killed_child import (
    FAILED_PROCESS_NOTE,
    PRINTED_FAILURE_NOTE,
    noted_failure,
)
from allaboard.analysis.member_names import command_on_host
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.analysis.stalls.child_process import awaits_child, unread_child
from allaboard.analysis.stalls.ended_child import (
    describe_failure,
    ended_child_advice,
    ended_child_clause,
    failed_processes,
    idle_pool,
    waits_for_own_process,
)
from allaboard.analysis.stalls.lock_kind import FULL_QUEUE, UNREAD_QUEUE, describe_wait
from allaboard.analysis.stalls.stall import IDLE_CORES, find_stall, is_still
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Frame, JobView, Severity, Who
from allaboard.facts.member import Member
from allaboard.facts.samples import (
    USER,
    sample_job,
    sample_member,
    sample_stack,
    stalled_job,
    waiting_member,
)
from allaboard.facts.stack import ENDED_CHILD

_WAITS = (Spot.ANSWER, Spot.CHILD, Spot.LOCK)
"""Places at which a process may wait for another one of its program."""

MIN_POOL_WAIT_S = 4.0
"""Seconds for which a member must have waited at one place for the result of an idle pool."""


def check(view: JobView) -> Iterator[Claim]:
    stall = find_stall(view)
    if not view.stalled or view.ending or (stall is not None and stall.waiting):
        return
    members = [m for m in view.alive if m.stack is not None and m.stack.frames]
    for member in members:
        # All processes of its pool were seen to wait: whatever they did before, nothing is on its way.
        if idle_pool(member) and member.stack is not None and member.stack.stays >= MIN_POOL_WAIT_S:
            yield _claim(
                view,
                member,
                ended_child_clause(member),
                ended_child_advice(member, _frame(member)),
            )
            return
    if not members or any(not is_still(m) or m.cpu >= IDLE_CORES for m in members):
        return
    # Who waits for an item says more than who waits for the end of another process.
    for member in sorted(members, key=awaits_child):
        if clause := _lost_process(view, member):
            yield _claim(view, member, clause, ended_child_advice(member, _frame(member)))
            return
    for member in filter(awaits_child, members):
        if clause := _unread_process(member, members):
            frame = _frame(member)
            advice = f"read the queue or pipe before the join() at {frame.file}:{frame.line}"
            yield _claim(view, member, clause, advice)
            return


def _frame(member: Member) -> Frame:
    assert member.stack is not None
    return member.stack.main_frame


def _lost_process(view: JobView, member: Member) -> str:
    """Return which process has failed for which the member may wait, as a clause; "" if none has."""
    if classify_stack(member.stack) not in _WAITS:
        return ""
    if idle_pool(member) or failed_processes(member):
        return ended_child_clause(member)
    # Its parent has waited for it already, and noted that: it says more than a process that came to its end.
    noted = (noted_failure(m) for m in view.alive if m.worker == member.worker)
    failure = next(filter(None, noted), None)
    if failure is not None:
        return f"its {describe_failure(*failure)}"
    if printed := _printed_failure(member):
        name, _, error = printed.partition(": ")
        return f"its process {name} has failed ({error})"
    return ended_child_clause(member)


def _printed_failure(member: Member) -> str:
    """Return which process has failed by the last traceback in the output; "" if the member does not wait for
    one of its processes."""
    frames = member.stack.frames if member.stack is not None else ()
    is_wait = any(waits_for_own_process(f) for f in takewhile(lambda f: not f.is_user, frames))
    return member.notes.get(PRINTED_FAILURE_NOTE, "") if is_wait else ""


def _unread_process(member: Member, members: Sequence[Member]) -> str:
    """Return which process waits until somebody reads what it writes, as a clause; "" if none does."""
    if pid := unread_child(member):
        return f"process {pid} waits until somebody reads what it has written: the pipe is full"
    for writer in members:
        description = describe_wait(writer.stack)
        if writer.worker == member.worker and description in (FULL_QUEUE, UNREAD_QUEUE):
            return f"process {writer.who.pid} is {description} ({_frame(writer)})"
    return ""


def _claim(view: JobView, member: Member, clause: str, advice: str) -> Claim:
    assert member.stack is not None
    frame = _frame(member)
    name = f"process {member.who.pid} of {member.who.name}" if member.candidate else member.who.name
    return Claim(
        summary=f"{name} is {describe_wait(member.stack)} at {frame}; {clause}",
        who=(member.who,),
        evidence=(
            Evidence(f"idle there for at least {member.stack.span:.1f} s", member.stack.by),
            Evidence(frame.text or str(frame), f"{frame.file}:{frame.line}"),
        ),
        fix=advice
        or f"see in {member.log} why it failed; "
        + command_on_host(view, member, f"py-spy dump --pid {member.who.pid}"),
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        since=stalled_since(view),
    )


_MULTIPROCESSING = "/usr/lib/python3.11/multiprocessing"
_GETS = sample_stack(
    Frame(f"{_MULTIPROCESSING}/connection.py", 379, "_recv"),
    Frame(f"{_MULTIPROCESSING}/queues.py", 103, "get"),
    USER,
)
_MAPS = msgspec.structs.replace(
    sample_stack(Frame(f"{_MULTIPROCESSING}/pool.py", 768, "get"), USER), idle_pool=3, stays=5.0
)
_PUTS = sample_stack(Frame(f"{_MULTIPROCESSING}/queues.py", 88, "put"), USER)
_JOINS = sample_stack(
    Frame(f"{_MULTIPROCESSING}/popen_fork.py", 27, "poll"),
    Frame(f"{_MULTIPROCESSING}/process.py", 149, "join"),
    Frame("/home/u/train.py", 60, "main", "for p in processes: p.join()"),
)
_FAILED = ((4711, 1),)
_GETS_OF_FAILED = msgspec.structs.replace(_GETS, failed=_FAILED)
_GETS_OF_ENDED = msgspec.structs.replace(_GETS, children=((4712, ENDED_CHILD),))
_JOINS_BESIDE_FAILED = msgspec.structs.replace(_JOINS, failed=_FAILED)
_LOCKED_BESIDE_FAILED = msgspec.structs.replace(
    sample_stack(Frame("/home/u/train.py", 9, "log", "with log_lock:")), failed=_FAILED
)
_THREAD_WAIT = Frame("/usr/lib/python3.11/threading.py", 327, "wait")
_CHILD = {"candidate": True, "worker": 0, "who": Who(index=0, host="a", pid=4712)}
_PRINTED = {"notes": {PRINTED_FAILURE_NOTE: "Process-2: KeyError: 'valid'"}}
_NOTED = {"notes": {FAILED_PROCESS_NOTE: "4711 1"}}

RULE = Rule(
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "a learner waits for an item of an actor that raised an exception": (
            stalled_job(sample_member(0, stack=_GETS_OF_FAILED)),
            "worker 0 is waiting for the answer of another process at train.py:41 in train; its process "
            "4711 has failed with exit code 1",
        ),
        "a program waits for the end of one process, and another one has failed": (
            stalled_job(sample_member(0, stack=_JOINS_BESIDE_FAILED)),
            "worker 0 is waiting for a child process at train.py:60 in main; its process 4711 has failed "
            "with exit code 1",
        ),
        "a program has waited for the process that failed, and waits for another one": (
            stalled_job(
                sample_member(0, stack=_JOINS, **_NOTED), sample_member(1, stack=_GETS, **_CHILD)
            ),
            "process 4712 of worker 0 is waiting for the answer of another process at train.py:41 in train; "
            "its process 4711 has failed with exit code 1",
        ),
        "one process came to its end, and another one has failed, for which the program has waited": (
            stalled_job(sample_member(0, stack=_GETS_OF_ENDED, **_NOTED)),
            "worker 0 is waiting for the answer of another process at train.py:41 in train; its process "
            "4711 has failed with exit code 1",
        ),
        "the output of a program without a probe ends with the traceback of a process": (
            stalled_job(sample_member(0, stack=_GETS_OF_ENDED, **_PRINTED)),
            "worker 0 is waiting for the answer of another process at train.py:41 in train; its process "
            "Process-2 has failed (KeyError: 'valid')",
        ),
        "the kernel killed an actor for lack of memory": (
            stalled_job(
                sample_member(0, stack=msgspec.structs.replace(_GETS, failed=((4711, -9),)))
            ),
            "worker 0 is waiting for the answer of another process at train.py:41 in train; its process "
            "4711 was killed by SIGKILL",
        ),
        "a pool has lost a task with the process that ran it, and has started another process": (
            stalled_job(
                sample_member(0, stack=_MAPS, io=3e5),
                sample_member(1, stack=msgspec.structs.replace(_GETS, moving=True), **_CHILD),
            ),
            "worker 0 is waiting for the answer of another process at train.py:41 in train; all 3 processes "
            "of its pool wait for a task: the one that it waits for is lost",
        ),
        "a program waits for the end of a process whose queue is full": (
            stalled_job(sample_member(0, stack=_JOINS), sample_member(1, stack=_PUTS, **_CHILD)),
            "worker 0 is waiting for a child process at train.py:60 in main; process 4712 is waiting for "
            "space in a queue between processes (train.py:41 in train)",
        ),
        "a program waits for the end of a process whose pipe is full": (
            stalled_job(sample_member(0, stack=msgspec.structs.replace(_JOINS, unread_child=4712))),
            "worker 0 is waiting for a child process at train.py:60 in main; process 4712 waits until "
            "somebody reads what it has written: the pipe is full",
        ),
    },
    silent_on={
        "another process of the program computes": stalled_job(
            sample_member(0, stack=_GETS_OF_FAILED),
            sample_member(1, stack=sample_stack(USER, moving=True), cpu=0.9, **_CHILD),
        ),
        "no process has failed": stalled_job(sample_member(0, stack=_GETS)),
        "the output ends with such a traceback, and the program waits for a thread": stalled_job(
            sample_member(0, stack=sample_stack(_THREAD_WAIT, USER), **_PRINTED)
        ),
        "a process has failed, and the program stands at a lock between its threads": stalled_job(
            sample_member(0, stack=_LOCKED_BESIDE_FAILED)
        ),
        "the program has moved just now": sample_job(sample_member(0, stack=_GETS_OF_FAILED)),
        "a process has failed, and the program sleeps": stalled_job(
            sample_member(
                0,
                stack=sample_stack(Frame("/home/u/train.py", 9, "poll", "time.sleep(60)")),
                **_NOTED,
            )
        ),
        "members of a distributed job wait for the one, which has a finding of its own": stalled_job(
            waiting_member(0), sample_member(1, stack=_GETS_OF_FAILED), waiting_member(2)
        ),
        "a queue is full, and its reader is at work": stalled_job(
            sample_member(0, stack=sample_stack(USER), cpu=0.9),
            sample_member(1, stack=_PUTS, **_CHILD),
        ),
    },
    passes=True,
    drill=("actor-failed", "queue-unread"),
)
