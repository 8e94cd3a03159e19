"""A thread of a member that ended by an exception: the program goes on, and may wait for ever for what that
thread was to make.
"""

from __future__ import annotations

import msgspec

from allaboard.analysis.collectives.point_to_point import message
from allaboard.analysis.stacks.stack_classifier import Spot, spot
from allaboard.facts import Evidence, Frame, Member

THREAD_RAISED_NOTE, THREAD_CALLED_NOTE, THREAD_ENDED_NOTE = (
    "thread raised",
    "thread called",
    "thread ended",
)
_EXCEPTHOOK_SOURCE = "its excepthook"
_WAITS_FOR_THREAD = (Spot.LOCK, Spot.SLEEP, Spot.DATA, Spot.USER, Spot.ANSWER)
"""Where a program waits for a thread of its own, or looks now and then whether that has made something."""


class EndedThread(msgspec.Struct, frozen=True):
    """``raised`` is its error, ``place`` the line and function that raised it, ``called`` the framework's
    operation that it was in last; "" where not known. ``step`` is how many steps its process had done,
    ``did`` what the thread had a part in: "steps", "calls" of the framework between members, or "nothing" of
    the kind; "end" where the interpreter was about to end."""

    raised: str
    raised_at: str
    last_call: str = ""
    step: int = 0
    took_part_in: str = ""
    name: str = ""

    @property
    def error(self) -> tuple[str, str]:
        """The type of its error, and what that says."""
        kind, _, message = self.raised.partition(": ")
        return kind, message


def ended_thread(member: Member) -> EndedThread | None:
    """The last thread of this member that ended by an exception; None where there was none."""
    note = member.notes.get(THREAD_RAISED_NOTE, "")
    if not note:
        return None
    raised, separator, raised_at = note.rpartition(" at ")
    called = member.notes.get(THREAD_CALLED_NOTE, "")
    step, _, details = member.notes.get(THREAD_ENDED_NOTE, "").partition(" ")
    did, _, name = details.partition(" ")
    if not separator:
        raised, raised_at = note, ""
    return EndedThread(raised, raised_at, called, int(step) if step.isdigit() else 0, did, name)


def owes_message(member: Member, waiting: tuple[Member, ...]) -> bool:
    """Whether somebody waits for the other side of a message with this member, the like of which was the last
    that a thread of it did before that ended by an exception; and the member itself is at something else."""
    ended = ended_thread(member)
    last_message = message(ended.last_call) if ended is not None else None
    if last_message is None or (member.op is not None and message(member.op.name)):
        return False
    for peer in waiting:
        peer_message = message(peer.op.name) if peer.op is not None else None
        if peer_message is None or not peer_message.answers(last_message):
            continue
        if (peer_message.peer, last_message.peer) == (member.who.rank, peer.who.rank):
            return True
    return False


def dead_thread_evidence(member: Member) -> tuple[Evidence, ...]:
    """What the last such thread of this member raised, and where; nothing where there was none."""
    thread = ended_thread(member)
    if thread is None:
        return ()
    raised = Evidence(
        f"a thread of it has ended: {thread.raised}", thread.raised_at or _EXCEPTHOOK_SOURCE
    )
    if message(thread.last_call) is None:
        return (raised,)
    return (raised, Evidence(f"what that thread did last: {thread.last_call}", "black box"))


def dead_thread_clause(member: Member) -> str:
    """The end of a sentence that says where a member stands: the thread that it seems to wait for.
    "" where it waits for no thread, or none has ended."""
    thread = ended_thread(member)
    if thread is None or spot(member.stack) is not Spot.LOCK:
        return ""
    file, _, position = thread.raised_at.partition(":")
    location = f" at {file.rpartition('/')[2]}:{position}" if thread.raised_at else ""
    return f", after a thread of {member.who.name} raised {thread.raised}{location}"


def dead_thread_advice(member: Member, wait_frame: Frame) -> str:
    """What to do about the thread that has ended, where its member waits ``at`` a place for what that was
    to make, as far as it shows; else ""."""
    thread = ended_thread(member)
    if thread is None or spot(member.stack) not in _WAITS_FOR_THREAD:
        return ""
    awaited = (
        f"{wait_frame.file}:{wait_frame.line} waits for what that thread should have delivered"
    )
    if not thread.raised_at:
        return f"see in {member.log} what ended one of its threads: it seems that {awaited}"
    raising_line = thread.raised_at.partition(" in ")[0]
    hedge = "" if spot(member.stack) is Spot.LOCK else "it seems that "
    return f"fix {raising_line}, which ended a thread: {hedge}{awaited}"
