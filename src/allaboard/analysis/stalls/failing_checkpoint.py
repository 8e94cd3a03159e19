"""Who tries again and again to write a checkpoint, in vain, while others wait for it."""

from __future__ import annotations

import msgspec

from allaboard.analysis.stalls.checkpoint_pauses import MAX_PAUSE_S
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.facts import JobView, Member

NOT_SAVED_NOTE = "not saved"
MIN_FAILURES_IN_A_ROW = 3
"""Failures in a row: one or two are met by a retry that is meant to help."""


class FailingCheckpoint(msgspec.Struct, frozen=True):
    """``times`` in a row a checkpoint could not be written, the last for this ``error``, at ``place``."""

    failures_in_a_row: int
    error: str
    location: str


def find_failing_checkpoint(view: JobView, member: Member) -> FailingCheckpoint | None:
    """What this member meets, once the others have waited for as long as a checkpoint may take."""
    count, _, details = member.notes.get(NOT_SAVED_NOTE, "").partition(" ")
    if (
        not count.isdecimal()
        or int(count) < MIN_FAILURES_IN_A_ROW
        or view.now - stalled_since(view) < MAX_PAUSE_S
    ):
        return None
    error, _, location = details.rpartition(" at ")
    return FailingCheckpoint(int(count), error, location)
