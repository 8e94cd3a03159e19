"""Who tries again and again to write a checkpoint, in vain, while others wait for it."""

from __future__ import annotations

import msgspec

from allaboard.analysis.stalls.checkpoint_pauses import LONG
from allaboard.analysis.stalls.stalled_members import stood_since
from allaboard.facts import JobView, Member

NOTE = "not saved"
ROW = 3
"""Failures in a row: one or two are met by a retry that is meant to help."""


class Unsaved(msgspec.Struct, frozen=True):
    """``times`` in a row a checkpoint could not be written, the last for this ``error``, at ``place``."""

    times: int
    error: str
    place: str


def unsaved(view: JobView, member: Member) -> Unsaved | None:
    """What this member meets, once the others have waited for as long as a checkpoint may take."""
    count, _, said = member.notes.get(NOTE, "").partition(" ")
    if not count.isdecimal() or int(count) < ROW or view.now - stood_since(view) < LONG:
        return None
    error, _, place = said.rpartition(" at ")
    return Unsaved(int(count), error, place)
