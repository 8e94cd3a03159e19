"""Members that fail to write a checkpoint again and again while others wait for them."""

from __future__ import annotations

import msgspec

from allaboard.analysis.stalls.expected_pauses import MAX_PAUSE_S
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.facts import JobView, Member

NOT_SAVED_NOTE = "not saved"
"""Note of the probe about failed attempts to write a checkpoint: "COUNT ERROR at FILE:LINE in FUNCTION"."""
MIN_FAILURES_IN_A_ROW = 3
"""Failures in a row from which a checkpoint counts as failing; one or two may be cured by a retry."""


class FailingCheckpoint(msgspec.Struct, frozen=True):
    """A checkpoint that could not be written several times in a row."""

    failures_in_a_row: int
    """Number of failed attempts since the last success."""
    error: str
    """Error of the last attempt."""
    location: str
    """Place in the user's code that made the last attempt, as "FILE:LINE in FUNCTION"."""


def find_failing_checkpoint(view: JobView, member: Member) -> FailingCheckpoint | None:
    """Return the member's failing checkpoint, once the stall has lasted as long as a checkpoint may take."""
    # The note is "COUNT ERROR at FILE:LINE in FUNCTION", see the probe's checkpoint hooks.
    count, _, details = member.notes.get(NOT_SAVED_NOTE, "").partition(" ")
    if (
        not count.isdecimal()
        or int(count) < MIN_FAILURES_IN_A_ROW
        or view.now - stalled_since(view) < MAX_PAUSE_S
    ):
        return None
    error, _, location = details.rpartition(" at ")
    return FailingCheckpoint(int(count), error, location)
