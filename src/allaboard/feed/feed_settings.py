"""What the feed of a run is made with, and what it needs of the agent."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Protocol

from allaboard.cluster.transport.tls import TlsFiles
from allaboard.facts import Finding
from allaboard.protocol.events import StackSampled


class FeedSettings(NamedTuple):
    """What a feed is made with."""

    job: str
    """The job's id."""
    command: tuple[str, ...]
    """The command of the workers, without passwords."""
    folder: Path
    """The run folder."""
    started_at: float
    """When the run began (s, CLOCK_MONOTONIC)."""
    host: str
    """This host."""
    address: str = ""
    """``HOST:PORT`` on which the feed is published besides the socket in the run folder; "" for none."""
    events_path: str = ""
    """File into which the feed is written, "-" for stdout; "" for none."""
    secret: bytes = b""
    """The job's secret; b"" if it has none."""
    tls: TlsFiles | None = None
    """Certificates of this host; None without TLS."""
    only_observes: bool = False
    """True if no process may be touched, so that no stacks are sampled."""
    is_joined: bool = False
    """True if agents of other hosts belong to the job, one of which will lead."""


class Clock(Protocol):
    """The part of `clock.SystemClock` that the feed uses."""

    def monotonic(self) -> float:
        """Return CLOCK_MONOTONIC (s)."""

    def utc(self, monotonic: float) -> str:
        """Return the time of day."""


class Speaker(Protocol):
    """The part of the agent's announcer that the feed uses."""

    @property
    def script_findings(self) -> tuple[Finding, ...]:
        """Findings from the text of the script and from the environment."""

    def write_line(self, text: str, to_terminal: bool = True) -> None:
        """Write a note to the journal, and print it."""


class StackSource(Protocol):
    """The part of the agent's control plane that the feed uses."""

    def take_stack_samples(self) -> list[StackSampled]:
        """Return the stacks that were sampled since the last call, on all hosts."""
