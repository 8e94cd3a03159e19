"""A thread of a member that ended by an exception: the program goes on, and may wait for ever for what that
thread was to make.
"""

from __future__ import annotations

from allaboard.facts import Evidence, Member

NOTE = "thread raised"


def thread_ended(one: Member) -> tuple[Evidence, ...]:
    """What the last such thread of this member raised, and where; nothing where there was none."""
    said = one.notes.get(NOTE, "")
    if not said:
        return ()
    raised, at, place = said.rpartition(" at ")
    if not at:
        raised, place = said, "its excepthook"
    return (Evidence(f"a thread of it has ended: {raised}", place),)
