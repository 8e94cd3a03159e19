"""What a tracker must be to get scalars and findings, and the errors that it answers with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from allaboard.errors import AllaboardError
from allaboard.faces.experiments.finding_note import FindingNote
from allaboard.faces.experiments.scalar_table import ScalarPoint
from allaboard.facts import Snapshot

Record = ScalarPoint | FindingNote


class MissingTrackerError(AllaboardError):
    """A tracker cannot be used in all of this run, for example since its package is not installed. The text
    is a clause for people that says what to do."""


class Tracker(Protocol):
    """A place to which a run is written. Its methods are called in threads, never two at a time. They may
    block, or raise whatever the tracker's package raises."""

    subject: str
    """What is written, and by which option, for people: "scalars for TensorBoard (--tensorboard)"."""

    is_optional: bool
    """True if it is one of several, any of which the script may use: its absence alone is not said."""

    def find_place(self, snapshot: Snapshot) -> str:
        """Return where the run is written to; "" if that is not known yet.

        Raises MissingTrackerError."""

    def why_no_place(self) -> str:
        """Return why no place was found until the run ended, and what to do, as a clause."""

    def write(self, records: Sequence[Record]) -> None:
        """Write the records, oldest first, so that they are kept whatever happens next."""

    def close(self, snapshot: Snapshot) -> None:
        """Write how the run ended, and close."""
