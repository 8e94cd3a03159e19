"""Use of something that is limited, by a process or on a host."""

from __future__ import annotations

import msgspec


class Reading(msgspec.Struct, frozen=True):
    """One measurement of something that is limited."""

    name: str
    """What is measured: "open files", "memory", "throttled", …."""
    value: float
    """How much is used, in its own unit."""
    limit: float = 0.0
    """The limit in the same unit; 0 if there is none."""
    pid: int = 0
    """The process; 0 if the measurement is the host's."""
    origin: str = ""
    """Where it was read."""


class Trend(msgspec.Struct, frozen=True):
    """The line through several measurements."""

    rate: float = 0.0
    """Slope per second."""
    fit: float = 0.0
    """Coefficient of determination of the line, from 0 to 1."""
    span: float = 0.0
    """Seconds over which was measured."""


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """Course of one reading over some time."""

    host: str
    """The host."""
    pid: int
    """The process; 0 if the reading is the host's."""
    name: str
    """What is measured."""
    value: float
    """The last value."""
    limit: float
    """Its limit; 0 if there is none."""
    rate: float
    """Slope per second of the least-squares line."""
    fit: float
    """Coefficient of determination of that line, from 0 to 1."""
    span: float
    """Seconds over which was measured."""
    origin: str
    """Where it was read."""
    recent: Trend = Trend()
    """The line of the last four seconds."""

    @property
    def recent_use(self) -> Use:
        """This use, by its recent line alone."""
        trend = self.recent
        return msgspec.structs.replace(self, rate=trend.rate, fit=trend.fit, span=trend.span)

    @property
    def seconds_left(self) -> float:
        """Seconds until the limit at this rate; infinite if the use does not rise."""
        return (self.limit - self.value) / self.rate if self.rate > 0 else float("inf")
