"""Load of hosts that slows the members that train on them, as rules read it."""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.parameter_servers import only_serves
from allaboard.analysis.performance.recent_window import MIN_RECENT_SPAN_S
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member, Phase, Severity, Trend, Use
from allaboard.facts.samples import sample_job, sample_member

MIN_RATE_SPAN_S = 10.0
"""Seconds of measurement needed for a verdict on a counter's rate."""
SHORT_SPAN_FACTOR = 5
"""Factor over the needed rate at which a few seconds of measurement are enough."""
THROTTLED_SHARE = 0.5
"""Seconds per second of throttling from which the CPU quota of a control group sets the pace."""


def is_whole_job_training(view: JobView) -> bool:
    """Return True if all members train, or serve those that do; the start and the end have other loads."""
    members = [m for m in view.alive if not m.launcher]
    if view.ending or not any(m.phase is Phase.TRAINING for m in members):
        return False
    return all(m.phase is Phase.TRAINING or _is_serving(m) for m in members)


def _is_serving(member: Member) -> bool:
    return member.phase is Phase.JOINED and only_serves(member)


def find_throttling(view: JobView, member: Member) -> Use | None:
    """Return how much its control group throttles the member, if for half of the time or more; else None."""
    uses = (
        use
        for use, whose in _rising_counters(view, "throttled", THROTTLED_SHARE, THROTTLED_SHARE)
        if any(m.event_key == member.event_key for m in whose)
    )
    return next(uses, None)


def find_pressed_hosts(
    view: JobView, name: str, rate: float
) -> Iterator[tuple[Use, tuple[Member, ...]]]:
    """Yield the hosts whose counter ``name`` rises by ``rate`` or more a second, with the members there."""
    yield from _rising_counters(view, name, rate, rate * SHORT_SPAN_FACTOR)


def _rising_counters(
    view: JobView, name: str, rate: float, short_rate: float
) -> Iterator[tuple[Use, tuple[Member, ...]]]:
    """Yield uses whose counter rises by ``rate`` a second, or by ``short_rate`` over a few seconds."""
    for longterm in view.uses:
        if longterm.name != name or not is_whole_job_training(view):
            continue
        use = (
            longterm
            if longterm.span >= MIN_RATE_SPAN_S and longterm.rate >= rate
            else longterm.recent_use
        )
        if use is longterm or (use.span >= MIN_RECENT_SPAN_S and use.rate >= short_rate):
            members = tuple(
                m
                for m in view.alive
                if m.who.host == use.host and use.pid in (0, m.who.pid) and not m.launcher
            )
            if members:
                yield use, members


def host_load_claim(
    members: tuple[Member, ...], summary: str, evidence: Evidence, fix: str
) -> Claim:
    """Return a warning about a host: the job goes on, but more slowly."""
    return Claim(
        summary=summary,
        who=tuple(m.who for m in members[:8]),
        evidence=(evidence,),
        fix=fix,
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
    )


def example_busy_host(
    name: str, rate: float, span: float = 20.0, limit: float = 0.0, recent: float = 0.0
) -> JobView:
    """Return a job for rules' examples on host "a", whose counter rises by ``rate`` a second.

    ``recent`` is its rate over the last four seconds.
    """
    use = Use(
        host="a", pid=0, name=name, value=9.0, limit=limit, rate=rate, fit=0.99, span=span,
        origin="cpu.stat", recent=Trend(recent, 0.99, 4.0),
    )  # fmt: skip
    return sample_job(*(sample_member(r) for r in range(3)), uses=(use,))
