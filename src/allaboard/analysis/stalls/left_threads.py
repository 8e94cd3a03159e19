"""Threads that keep a process whose script has come to its end: those that are no daemons. Pure."""

from __future__ import annotations

from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.facts import Frame, Member

MAX_SHOWN_THREADS = 3
"""Places of threads that are named."""


def left_threads(member: Member) -> tuple[Frame, ...]:
    """Return where the threads are that the interpreter waits for at its end; () if it is not there, or they
    were not seen."""
    if member.stack is None or classify_stack(member.stack) is not Spot.LEAVING:
        return ()
    return member.stack.other_thread_frames[:MAX_SHOWN_THREADS]


def left_threads_clause(member: Member) -> str:
    """Return for what its interpreter waits, with these places; "" if there are none."""
    places = ", ".join(map(str, left_threads(member)))
    return f"at its end, and waits for its other threads ({places})" if places else ""


def left_threads_advice(member: Member) -> str:
    """Return what to do about them, "" if there are none. A daemon among them does not keep the process, but
    neither can it be told from the others."""
    frames = left_threads(member)
    if not frames:
        return ""
    return (
        f"end the thread that is at {frames[0].file}:{frames[0].line} (send it what ends its loop), or start "
        "it with daemon=True"
    )
