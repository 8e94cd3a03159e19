"""The loss of the agent that led the job, as another agent has seen it."""

from __future__ import annotations

import msgspec

from allaboard.facts.bounds import Instant, RankNumber, Whole
from allaboard.facts.link import Answer

ABSENT_ANSWERS = (Answer.REFUSED, Answer.SILENT, Answer.UNREACHABLE, Answer.NO_NAME)
"""Answers at an agent's own port that show that no agent is there, or that it cannot be reached."""


class LeaderLoss(msgspec.Struct, frozen=True, kw_only=True):
    """The connection to the leading agent has ended, or is silent, and that agent had not said goodbye."""

    host: str
    """Name of its host."""
    rank: RankNumber
    """Rank of its first member; -1 if that is not known."""
    address: str
    """``host:port`` at which its agent could be reached during the training."""
    lost_at: Instant
    """When the connection ended, or the silence was noticed (s, CLOCK_MONOTONIC)."""
    how: str
    """How it ended, in words for people."""
    answer: Answer | None = None
    """What the address answers since then; None while that is being tried for the first time."""
    detail: str = ""
    """The system's own words for this answer."""
    tries: Whole = 0
    """How often this answer came."""
    is_silent: bool = False
    """True if the connection did not end, but nothing has come over it for long."""

    @property
    def is_confirmed(self) -> bool:
        """True if no agent answers at its address any more."""
        return self.answer in ABSENT_ANSWERS
