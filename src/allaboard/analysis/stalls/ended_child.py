"""Members that wait for an answer of processes that they have started, all of which have ended, or wait for
tasks themselves."""

from __future__ import annotations

import re

from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.facts import Frame, Member
from allaboard.facts.stack import ENDED_CHILD

_FROM_CHILD = re.compile(r"(?:^|/)multiprocessing/(?:queues|connection|pool)\.py$")
"""Files of the standard library in which a process waits for what another one of its program sends."""


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


def answer_is_lost(member: Member) -> bool:
    """Return True if nobody is left who could send what the member waits for."""
    return bool(ended_children(member)) or _idle_pool(member) > 0


def _idle_pool(member: Member) -> int:
    return member.stack.idle_pool if member.stack is not None else 0


def ended_child_clause(member: Member) -> str:
    """Return "its child process 4711, which might have sent it, has ended"; "" if that is not so."""
    if count := _idle_pool(member):
        return (
            f"{'all ' if count > 1 else ''}{count} process{'es' * (count > 1)} of its pool "
            f"{'wait' if count > 1 else 'waits'} for a task: the one that it waits for is lost"
        )
    ended = ended_children(member)
    if not ended:
        return ""
    if ended[1:]:
        return f"all {len(ended)} child processes that might have sent it have ended"
    return f"its child process {ended[0]}, which might have sent it, has ended"


def ended_child_advice(member: Member, frame: Frame) -> str:
    """Return where to look for why a child ended before it had sent all; "" if none did."""
    if _idle_pool(member):
        return (
            "see whether a process of the pool was killed (dmesg -T | grep -i oom): Pool starts another one "
            "and never answers; concurrent.futures.ProcessPoolExecutor raises BrokenProcessPool instead"
        )
    if not ended_children(member):
        return ""
    return (
        f"see why the process ended before it had sent what {frame.file}:{frame.line} waits for: its last "
        f"output, and Process.exitcode; let it send an end marker, and give get() a timeout"
    )
