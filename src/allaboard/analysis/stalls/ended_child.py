"""Members that wait for an answer of processes that they have started, all of which have ended, or wait for
tasks themselves."""

from __future__ import annotations

import re
from itertools import takewhile

from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.facts import Frame, Member
from allaboard.facts.signal_name import signal_name
from allaboard.facts.stack import ENDED_CHILD

_FROM_CHILD = re.compile(r"(?:^|/)multiprocessing/(?:queues|connection|pool)\.py$")
"""Files of the standard library in which a process waits for what another one of its program sends."""
_OF_PROCESSES = re.compile(r"(?:^|/)multiprocessing/\w+\.py$")
"""Files of the standard library in which a process waits for another one of its program."""


def ended_children(member: Member) -> tuple[int, ...]:
    """Return the pids of the children that have ended and for whose answer the member waits.

    Return () if a child lives, or if the answer may come from another program.
    """
    stack = member.stack
    if stack is None or classify_stack(stack) is not Spot.ANSWER:
        return ()
    ended = tuple(pid for pid, command in stack.children if command == ENDED_CHILD)
    from_child = any(_FROM_CHILD.search(frame.file) for frame in stack.frames)
    return ended if from_child and len(ended) == len(stack.children) else ()


def failed_processes(member: Member) -> tuple[tuple[int, int], ...]:
    """Return the processes of the member's program that failed and were not waited for, with exit code or,
    below 0, signal; () if the member waits where none of them can be missed."""
    stack = member.stack
    if stack is None or not stack.failed or not stack.frames:
        return ()
    # acquire() of multiprocessing waits in C, and leaves no frame; its `with` has one, a thread's lock none.
    leaf = stack.frames[0]
    is_lock = leaf.is_user and classify_stack(stack) is Spot.LOCK and ".acquire" in leaf.text
    waits = list(takewhile(lambda frame: not frame.is_user, stack.frames))
    return stack.failed if is_lock or any(map(waits_for_own_process, waits)) else ()


def waits_for_own_process(frame: Frame) -> bool:
    """Return True if this frame of a library waits for another process of the program."""
    return _OF_PROCESSES.search(frame.file) is not None


def describe_failure(pid: int, code: int) -> str:
    """Return "process 4711 has failed with exit code 1" or "process 4711 was killed by SIGKILL"."""
    how = f"has failed with exit code {code}" if code > 0 else f"was killed by {signal_name(-code)}"
    return f"process {pid} {how}"


def answer_is_lost(member: Member) -> bool:
    """Return True if who should send what the member waits for has failed, or nobody is left who could."""
    is_answer = classify_stack(member.stack) is Spot.ANSWER
    return (
        bool(ended_children(member))
        or (is_answer and bool(failed_processes(member)))
        or idle_pool(member) > 0
    )


def idle_pool(member: Member) -> int:
    """Return how many processes the pool of the member has, all of which wait for a task; else 0."""
    return member.stack.idle_pool if member.stack is not None else 0


def ended_child_clause(member: Member) -> str:
    """Return "its child process 4711, which might have sent it, has ended"; "" if that is not so."""
    if count := idle_pool(member):
        return (
            f"{'all ' if count > 1 else ''}{count} process{'es' * (count > 1)} of its pool "
            f"{'wait' if count > 1 else 'waits'} for a task: the one that it waits for is lost"
        )
    ended = ended_children(member)
    if failed := failed_processes(member):
        return f"its {describe_failure(*failed[0])}"
    if not ended:
        return ""
    if ended[1:]:
        return f"all {len(ended)} child processes that might have sent it have ended"
    return f"its child process {ended[0]}, which might have sent it, has ended"


def ended_child_advice(member: Member, frame: Frame) -> str:
    """Return where to look for why a child ended before it had sent all; "" if none did."""
    if idle_pool(member):
        return (
            "see whether a process of the pool was killed (dmesg -T | grep -i oom): Pool starts another one "
            "and never answers; concurrent.futures.ProcessPoolExecutor raises BrokenProcessPool instead"
        )
    if not ended_children(member) and not failed_processes(member):
        return ""
    return (
        f"see why the process ended before it had sent what {frame.file}:{frame.line} waits for: the "
        f"traceback in {member.log}, and Process.exitcode; let it send an end marker, and give get() a "
        "timeout"
    )
