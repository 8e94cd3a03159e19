"""A thread of a member that ended by an exception: the program goes on, and may wait for ever for what that
thread was to make.
"""

from __future__ import annotations

import msgspec

from allaboard.analysis.collectives.point_to_point import message
from allaboard.analysis.stacks.stack_classifier import Spot, spot
from allaboard.facts import Evidence, Frame, Member

NOTE, CALLED, ENDED = "thread raised", "thread called", "thread ended"
_HOOK = "its excepthook"
_WAITS = (Spot.LOCK, Spot.SLEEP, Spot.DATA, Spot.USER, Spot.ANSWER)
"""Where a program waits for a thread of its own, or looks now and then whether that has made something."""


class EndedThread(msgspec.Struct, frozen=True):
    """``raised`` is its error, ``place`` the line and function that raised it, ``called`` the framework's
    operation that it was in last; "" where not known. ``step`` is how many steps its process had done,
    ``did`` what the thread had a part in: "steps", "calls" of the framework between members, or "nothing" of
    the kind; "end" where the interpreter was about to end."""

    raised: str
    place: str
    called: str = ""
    step: int = 0
    did: str = ""
    name: str = ""

    @property
    def error(self) -> tuple[str, str]:
        """The type of its error, and what that says."""
        kind, _, said = self.raised.partition(": ")
        return kind, said


def ended_thread(member: Member) -> EndedThread | None:
    """The last thread of this member that ended by an exception; None where there was none."""
    said = member.notes.get(NOTE, "")
    if not said:
        return None
    raised, at, place = said.rpartition(" at ")
    called = member.notes.get(CALLED, "")
    step, _, rest = member.notes.get(ENDED, "").partition(" ")
    did, _, name = rest.partition(" ")
    if not at:
        raised, place = said, ""
    return EndedThread(raised, place, called, int(step) if step.isdigit() else 0, did, name)


def owes_message(member: Member, waiting: tuple[Member, ...]) -> bool:
    """Whether somebody waits for the other side of a message with this member, the like of which was the last
    that a thread of it did before that ended by an exception; and the member itself is at something else."""
    ended = ended_thread(member)
    last = message(ended.called) if ended is not None else None
    if last is None or (member.op is not None and message(member.op.name)):
        return False
    for other in waiting:
        side = message(other.op.name) if other.op is not None else None
        if side is None or not side.answers(last):
            continue
        if (side.peer, last.peer) == (member.who.rank, other.who.rank):
            return True
    return False


def thread_ended(member: Member) -> tuple[Evidence, ...]:
    """What the last such thread of this member raised, and where; nothing where there was none."""
    found = ended_thread(member)
    if found is None:
        return ()
    told = Evidence(f"a thread of it has ended: {found.raised}", found.place or _HOOK)
    if message(found.called) is None:
        return (told,)
    return (told, Evidence(f"what that thread did last: {found.called}", "black box"))


def after_thread(member: Member) -> str:
    """The end of a sentence that says where a member stands: the thread that it seems to wait for.
    "" where it waits for no thread, or none has ended."""
    found = ended_thread(member)
    if found is None or spot(member.stack) is not Spot.LOCK:
        return ""
    file, _, rest = found.place.partition(":")
    at = f" at {file.rpartition('/')[2]}:{rest}" if found.place else ""
    return f", after a thread of {member.who.name} raised {found.raised}{at}"


def mend_thread(member: Member, at: Frame) -> str:
    """What to do about the thread that has ended, where its member waits ``at`` a place for what that was
    to make, as far as it shows; else ""."""
    found = ended_thread(member)
    if found is None or spot(member.stack) not in _WAITS:
        return ""
    waited = f"{at.file}:{at.line} waits for what that thread should have delivered"
    if not found.place:
        return f"see in {member.log} what ended one of its threads: it seems that {waited}"
    line = found.place.partition(" in ")[0]
    sure = "" if spot(member.stack) is Spot.LOCK else "it seems that "
    return f"fix {line}, which ended a thread: {sure}{waited}"
