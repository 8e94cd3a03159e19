"""Hosts whose agents were asked to end, by a user or a batch system."""

from __future__ import annotations

import signal

import msgspec

from allaboard.facts.bounds import Instant, SignalNumber
from allaboard.facts.signal_name import signal_name

ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that ask an agent to end."""


class Interruption(msgspec.Struct, frozen=True, kw_only=True):
    """A host whose agent was asked to end."""

    host: str
    """The host."""
    signal: SignalNumber
    """Number of the signal."""
    interrupted_at: Instant
    """When it came (s)."""
    who: str = ""
    """Its members by name; "" if none was known."""

    def __str__(self) -> str:
        with_it = f", and {self.who} with it" if self.who else ""
        return f"{self.host} was interrupted by {signal_name(self.signal)}{with_it}"
