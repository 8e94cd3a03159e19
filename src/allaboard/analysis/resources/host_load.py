"""What hosts take from the members that train on them, as rules read it."""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.parameter_servers.parameter_servers import serves
from allaboard.analysis.performance.recent_window import SPAN as SOON
from allaboard.facts import (
    Certainty,
    Claim,
    Evidence,
    JobView,
    Member,
    Phase,
    Severity,
    Trend,
    Use,
)
from allaboard.facts.samples import job, member

SPAN = 10.0
"""Seconds that must have been measured, ..."""
MUCH = 5
"""... or fewer (`SOON`), where a counter rises so many times as fast as it must."""
HALF = 0.5
"""Seconds a second in which a group wanted to run and was not let, from which it is the quota that sets the
pace."""


def trains(view: JobView) -> bool:
    """Whether all train, or serve those who do: a start and an end have a load of their own."""
    members = [m for m in view.alive if not m.launcher]
    if view.ending or not any(m.phase is Phase.TRAINING for m in members):
        return False
    return all(m.phase is Phase.TRAINING or _at_work(m) for m in members)


def _at_work(member: Member) -> bool:
    return member.phase is Phase.JOINED and serves(member)


def throttled(view: JobView, member: Member) -> Use | None:
    """What its control group withholds from it, where that is half of the time and more."""
    found = (
        use
        for use, whose in _rising(view, "throttled", HALF, HALF)
        if any(m.called == member.called for m in whose)
    )
    return next(found, None)


def pressed(view: JobView, name: str, rate: float) -> Iterator[tuple[Use, tuple[Member, ...]]]:
    """Hosts of which this counter rises by so much a second, with who trains there."""
    yield from _rising(view, name, rate, rate * MUCH)


def _rising(
    view: JobView, name: str, rate: float, much: float
) -> Iterator[tuple[Use, tuple[Member, ...]]]:
    """``much``: a second, for some seconds."""
    for one in view.uses:
        if one.name != name or not trains(view):
            continue
        use = one if one.span >= SPAN and one.rate >= rate else one.lately
        if use is one or (use.span >= SOON and use.rate >= much):
            whose = tuple(
                m
                for m in view.alive
                if m.who.host == use.host and use.pid in (0, m.who.pid) and not m.launcher
            )
            if whose:
                yield use, whose


def loaded(whose: tuple[Member, ...], summary: str, evidence: Evidence, fix: str) -> Claim:
    """A warning about a host: the job goes on, and more slowly."""
    return Claim(
        summary=summary,
        who=tuple(m.who for m in whose[:8]),
        evidence=(evidence,),
        fix=fix,
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
    )


def busy(
    name: str, rate: float, span: float = 20.0, limit: float = 0.0, recent: float = 0.0
) -> JobView:
    """A job for rules' examples: host ``a``, where this counter rises by so much a second, and ``recent`` in
    the last four seconds."""
    use = Use(
        host="a", pid=0, name=name, value=9.0, limit=limit, rate=rate, fit=0.99, span=span,
        origin="cpu.stat", recent=Trend(recent, 0.99, 4.0),
    )  # fmt: skip
    return job(*(member(r) for r in range(3)), uses=(use,))
