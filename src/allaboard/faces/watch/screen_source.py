"""What the screen needs of the source of a run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from allaboard.faces.watch.run_source import SourceChanged
from allaboard.feed.messages import Message, Stacks


class Source(Protocol):
    """The part of `run_source.RunSource` that the screen uses."""

    def messages(self) -> AsyncIterator[Message | SourceChanged]:
        """Yield messages until the run has ended. Raises FeedError."""

    def request_stacks(self) -> int:
        """Ask for fresh stacks; return the id of the answer, or 0 if nobody can be asked."""

    def recorded_stacks(self) -> Stacks | None:
        """Return the stacks of the journal's last picture; None if no journal is read."""

    def close(self) -> None:
        """Close the feed."""
