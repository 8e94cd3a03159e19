"""What will run out, and when: a limit, and a line that rises towards it."""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.performance.recent_window import SPAN as SOON
from allaboard.analysis.resources.host_load import trains
from allaboard.facts import Claim, Evidence, JobView, Member, Severity, Trend, Use, Who
from allaboard.facts.finding import Certainty
from allaboard.facts.samples import job, member

SPAN = 10.0
"""Seconds that must have been measured, ..."""
STRAIGHT = 0.9
"""... in which the line must fit so well, ..."""
NEARLY = 0.98
"""... or so well in a few (`SOON`), ..."""
HALF = 0.5
"""... once so much of the limit is used, ..."""
STILL = 0.5
"""... and in the last seconds it still rises by so much of what the line says, ..."""
AHEAD = 5.0
"""... and it is reached within so many times the time of that line: other programs start, too."""


def running_out(view: JobView, *names: str) -> Iterator[tuple[Use, tuple[Member, ...]]]:
    """What of these names rises towards its limit, with whose it is: of a host's, all who train there.

    Only while all train: a start takes memory and files at a pace of its own, and is not measured."""
    for one in view.uses:
        if not one.limit or one.value < HALF * one.limit or not one.name.startswith(names):
            continue
        still = one.recent.rate >= STILL * one.rate  # else a warm-up or a checkpoint is over
        use = one if still and _soon(one, SPAN, STRAIGHT) else one.lately
        if (use is one or _soon(use, SOON, NEARLY)) and trains(view):
            members = tuple(m for m in view.alive if not m.launcher)
            whose = tuple(
                m for m in members if m.who.host == use.host and use.pid in (0, m.who.pid)
            )
            if whose:
                yield use, whose


def _soon(use: Use, span: float, straight: float) -> bool:
    """Whether its line was seen for so long, fits, and reaches the limit soon."""
    return use.span >= span and use.fit >= straight and use.left <= AHEAD * use.span


def claim(use: Use, who: tuple[Who, ...], subject: str, fix: str) -> Claim:
    """``subject`` ("worker 1 runs out of open files") and when, as a warning."""
    return Claim(
        summary=f"{subject} in about {when(use.left)}: {amount(use, use.value)} of "
        f"{amount(use, use.limit)}, {amount(use, use.rate)} more a second",
        who=who,
        evidence=(
            Evidence(
                f"{amount(use, use.value)}, a straight line over {use.span:.0f} s "
                f"(fit {use.fit:.2f})",
                use.origin,
            ),
        ),
        fix=fix,
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
    )


def when(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def amount(use: Use, value: float) -> str:
    """A number of files, or bytes in the unit that suits them."""
    if use.limit < 1 << 20 and use.name == "open files":
        return f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"
    for unit, size in (("GB", 1e9), ("MB", 1e6)):
        if value >= size:
            return f"{value / size:.1f} {unit}"
    return f"{value / 1e3:.0f} kB"


def rising(name: str, pid: int = 101, **changes: float) -> JobView:
    """A job for rules' examples: rank 1, or host ``a``, uses 700 of 1000 (files) or MB, 10 more a second,
    ``recent`` in the last four."""
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
    return job(*(member(r) for r in range(3)), uses=(use,))
