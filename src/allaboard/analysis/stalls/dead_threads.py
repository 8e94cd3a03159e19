"""Threads of a member that died of an exception.

The program goes on without the thread, and may wait for ever for what the thread should have delivered.
"""

from __future__ import annotations

import msgspec

from allaboard.analysis.collectives.point_to_point import parse_message
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.facts import Evidence, Frame, Member

# Notes of the probe about the last dead thread: "Type: message at PLACE", its last operation, and
# "STEP TOOK_PART_IN NAME".
THREAD_RAISED_NOTE, THREAD_CALLED_NOTE, THREAD_ENDED_NOTE = (
    "thread raised",
    "thread called",
    "thread ended",
)
_EXCEPTHOOK_SOURCE = "its excepthook"
_WAITS_FOR_THREAD = (Spot.LOCK, Spot.SLEEP, Spot.DATA, Spot.USER, Spot.ANSWER)
"""Places at which a program waits for one of its threads, or polls for a result of the thread."""


class EndedThread(msgspec.Struct, frozen=True):
    """The last thread of a member that died of an exception, read from the notes of its black box."""

    raised: str
    """The exception as "Type: message"."""
    raised_at: str
    """Place that raised it, as "FILE:LINE in FUNCTION"; "" if not known."""
    last_call: str = ""
    """The framework's operation that the thread was in last; "" if not known."""
    step: int = 0
    """Number of training steps that the process had done when the thread died."""
    took_part_in: str = ""
    """What the thread had worked on: "steps", "calls" (the framework's calls between members), "nothing" of
    either, or "end" if the interpreter was about to exit."""
    name: str = ""
    """The thread's name; "" if not known."""

    @property
    def error(self) -> tuple[str, str]:
        """Return the type and the message of the exception."""
        kind, _, message = self.raised.partition(": ")
        return kind, message


def ended_thread(member: Member) -> EndedThread | None:
    """Return the last thread of this member that died of an exception, or None."""
    note = member.notes.get(THREAD_RAISED_NOTE, "")
    if not note:
        return None
    # The message of the exception may contain " at " itself: the last one separates the place.
    raised, separator, raised_at = note.rpartition(" at ")
    called = member.notes.get(THREAD_CALLED_NOTE, "")
    # "STEP DID NAME"; the name comes last, since it may contain spaces.
    step, _, details = member.notes.get(THREAD_ENDED_NOTE, "").partition(" ")
    took_part_in, _, name = details.partition(" ")
    if not separator:
        raised, raised_at = note, ""
    return EndedThread(
        raised, raised_at, called, int(step) if step.isdecimal() else 0, took_part_in, name
    )


def owes_message(member: Member, waiting: tuple[Member, ...]) -> bool:
    """Return True if a waiting member needs a message that this member's dead thread should have exchanged.

    The last call of the dead thread shows this: it was a point-to-point call of the matching direction with
    the same peer. Return False if the member itself is in a point-to-point call now.
    """
    ended = ended_thread(member)
    last_message = parse_message(ended.last_call) if ended is not None else None
    if last_message is None or (member.op is not None and parse_message(member.op.name)):
        return False
    for peer in waiting:
        peer_message = parse_message(peer.op.name) if peer.op is not None else None
        if peer_message is None or not peer_message.can_answer(last_message):
            continue
        if (peer_message.peer, last_message.peer) == (member.who.rank, peer.who.rank):
            return True
    return False


def dead_thread_evidence(member: Member) -> tuple[Evidence, ...]:
    """Return what the member's dead thread raised, where, and its last message; () if no thread has died."""
    thread = ended_thread(member)
    if thread is None:
        return ()
    raised = Evidence(
        f"one of its threads has died: {thread.raised}", thread.raised_at or _EXCEPTHOOK_SOURCE
    )
    if parse_message(thread.last_call) is None:
        return (raised,)
    return (raised, Evidence(f"last call of that thread: {thread.last_call}", "black box"))


def dead_thread_clause(member: Member) -> str:
    """Return the clause ", after a thread of worker-1 raised …" for a member that waits at a lock.

    Return "" if the member does not wait for a lock, or none of its threads has died.
    """
    thread = ended_thread(member)
    if thread is None or classify_stack(member.stack) is not Spot.LOCK:
        return ""
    file, _, position = thread.raised_at.partition(":")
    location = f" at {file.rpartition('/')[2]}:{position}" if thread.raised_at else ""
    return f", after a thread of {member.who.name} raised {thread.raised}{location}"


def dead_thread_advice(member: Member, wait_frame: Frame) -> str:
    """Return what to do about the dead thread of a member that seems to wait for it at ``wait_frame``.

    Return "" if no thread has died, or the member's place is none at which a program waits for a thread.
    """
    thread = ended_thread(member)
    if thread is None or classify_stack(member.stack) not in _WAITS_FOR_THREAD:
        return ""
    awaited = (
        f"{wait_frame.file}:{wait_frame.line} waits for what that thread should have delivered"
    )
    if not thread.raised_at:
        return f"see in {member.log} what ended one of its threads: it seems that {awaited}"
    raising_line = thread.raised_at.partition(" in ")[0]
    hedge = "" if classify_stack(member.stack) is Spot.LOCK else "it seems that "
    return f"fix {raising_line}, which ended a thread: {hedge}{awaited}"
