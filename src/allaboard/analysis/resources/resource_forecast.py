"""Forecast of resources that will run out: a straight line that rises towards a limit."""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.performance.recent_window import MIN_RECENT_SPAN_S
from allaboard.analysis.resources.host_load import is_whole_job_training
from allaboard.facts import Claim, Evidence, JobView, Member, Severity, Trend, Use, Who
from allaboard.facts.finding import Certainty
from allaboard.facts.samples import sample_job, sample_member

MIN_TREND_SPAN_S = 10.0
"""Seconds of measurement needed for a forecast."""
MIN_TREND_FIT = 0.9
"""Fit that the line must have over that time (1.0 is perfect)."""
MIN_SHORT_TREND_FIT = 0.98
"""Fit that the line must have over only a few seconds."""
MIN_USED_SHARE = 0.5
"""Share of the limit that must be used already."""
MIN_STILL_RISING = 0.5
"""Share of the line's slope by which the value must still rise in the last seconds."""
MAX_FORECAST_FACTOR = 5.0
"""Times the measured span within which the limit must be reached; further ahead, other programs may start."""


def find_running_out(view: JobView, *names: str) -> Iterator[tuple[Use, tuple[Member, ...]]]:
    """Yield the uses with these names that rise towards their limit, with the members that they belong to.

    A use of a host belongs to all members that train there. Only while all members train: a start takes
    memory and files at another pace, and is not measured.
    """
    for longterm in view.uses:
        if (
            not longterm.limit
            or longterm.value < MIN_USED_SHARE * longterm.limit
            or not longterm.name.startswith(names)
        ):
            continue
        is_still_rising = (
            longterm.recent.rate >= MIN_STILL_RISING * longterm.rate
        )  # else a warm-up or a checkpoint is over
        use = (
            longterm
            if is_still_rising and _is_reached_soon(longterm, MIN_TREND_SPAN_S, MIN_TREND_FIT)
            else longterm.recent_use
        )
        if (
            use is longterm or _is_reached_soon(use, MIN_RECENT_SPAN_S, MIN_SHORT_TREND_FIT)
        ) and is_whole_job_training(view):
            members = tuple(m for m in view.alive if not m.launcher)
            owners = tuple(
                m for m in members if m.who.host == use.host and use.pid in (0, m.who.pid)
            )
            if owners:
                yield use, owners


def _is_reached_soon(use: Use, span: float, straight: float) -> bool:
    """Return True if the line was measured for ``span`` s, fits, and reaches the limit soon."""
    return (
        use.span >= span
        and use.fit >= straight
        and use.seconds_left <= MAX_FORECAST_FACTOR * use.span
    )


def forecast_claim(use: Use, affected: tuple[Who, ...], subject: str, fix: str) -> Claim:
    """Return the warning that ``subject`` ("worker 1 runs out of open files"), and when."""
    return Claim(
        summary=f"{subject} in about {format_duration(use.seconds_left)}: {format_amount(use, use.value)} of "
        f"{format_amount(use, use.limit)}, {format_amount(use, use.rate)} more a second",
        who=affected,
        evidence=(
            Evidence(
                f"{format_amount(use, use.value)}, a straight line over {use.span:.0f} s (fit {use.fit:.2f})",
                use.origin,
            ),
        ),
        fix=fix,
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
    )


def format_duration(seconds: float) -> str:
    """Return "42 s", or "3 min" from 100 s on."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def format_amount(use: Use, value: float) -> str:
    """Return a number of files, or bytes in a suitable unit ("1.5 GB")."""
    if use.limit < 1 << 20 and use.name == "open files":
        return f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"
    for unit, size in (("GB", 1e9), ("MB", 1e6)):
        if value >= size:
            return f"{value / size:.1f} {unit}"
    return f"{value / 1e3:.0f} kB"


def example_rising_use(name: str, pid: int = 101, **changes: float) -> JobView:
    """Return a job for rules' examples: rank 1, or host "a", uses 700 of 1000 files or MB, 10 more a second.

    ``recent`` in ``changes`` is the rate over the last four seconds.
    """
    size = 1.0 if name == "open files" else 1e6
    fields = {"value": 700.0, "limit": 1000.0, "rate": 10.0} | changes
    use = Use(
        host="a",
        pid=pid,
        name=name,
        value=fields["value"] * size,
        limit=fields["limit"] * size,
        rate=fields["rate"] * size,
        fit=fields.get("fit", 0.99),
        span=fields.get("span", 20.0),
        origin="/proc/101/fd",
        recent=Trend(
            fields.get("recent", fields["rate"]) * size, fields.get("recent_fit", 0.99), 4.0
        ),
    )
    return sample_job(*(sample_member(r) for r in range(3)), uses=(use,))
