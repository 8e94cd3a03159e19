"""What is used of something that is limited: by a process, or on a host."""

from __future__ import annotations

import msgspec


class Reading(msgspec.Struct, frozen=True):
    """One measurement of ``name`` ("open files", "memory", "throttled", ...): ``value`` of ``limit`` (0
    where there is none), in its own unit; ``pid`` 0 where it is the host's. ``origin``: where it was read."""

    name: str
    value: float
    limit: float = 0.0
    pid: int = 0
    origin: str = ""


class Trend(msgspec.Struct, frozen=True):
    """The line through what was measured in ``span`` s: its slope (a second), and how well it fits."""

    rate: float = 0.0
    fit: float = 0.0
    span: float = 0.0


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """How one reading went over the last ``span`` s: its last ``value`` of ``limit``, its ``rate`` (a second,
    least squares), and how well that line fits (``fit``, the coefficient of determination, 0 to 1);
    ``recent`` is the line of the last four seconds."""

    host: str
    pid: int
    name: str
    value: float
    limit: float
    rate: float
    fit: float
    span: float
    origin: str
    recent: Trend = Trend()

    @property
    def lately(self) -> Use:
        """This, with its recent line alone."""
        one = self.recent
        return msgspec.structs.replace(self, rate=one.rate, fit=one.fit, span=one.span)

    @property
    def left(self) -> float:
        """Seconds until the limit at this rate; infinite where it does not rise."""
        return (self.limit - self.value) / self.rate if self.rate > 0 else float("inf")
