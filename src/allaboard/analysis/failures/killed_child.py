"""A process that a member had started with multiprocessing and that a signal ended: what it was to deliver
never comes. A Pool starts another one in its place, and says nothing.
"""

from __future__ import annotations

from allaboard.facts import Evidence, Member
from allaboard.facts.signal_name import signal_name

KILLED_CHILD_NOTE = "process killed"


def killed_child_evidence(member: Member) -> tuple[Evidence, ...]:
    """The last of them that ended so since the step that the member did last; nothing where none did."""
    fields = member.notes.get(KILLED_CHILD_NOTE, "").split()
    if len(fields) != 3 or not all(f.isdigit() for f in fields) or int(fields[2]) != member.step:
        return ()
    return (
        Evidence(
            f"its process {fields[0]} was killed by {signal_name(int(fields[1]))}", "wait status"
        ),
    )
