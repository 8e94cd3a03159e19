"""Hosts that have gone without a word, with those who fell because of it."""

from __future__ import annotations

from typing import NamedTuple

from allaboard.analysis.failures.failure_causality import ended_at, failed, failed_at
from allaboard.analysis.failures.lost_peer import lost_peer
from allaboard.facts import JobView, Member, Phase
from allaboard.facts.memo import cached_per_view

TOGETHER = 10.0
"""Seconds between the host's last word and the fall of the first of its peers; also those in which the steps
end that were under way."""


class Gone(NamedTuple):
    """A host, its members (``there``), its last word (s, monotonic), and who ``fell`` with it on others."""

    host: str
    there: tuple[Member, ...]
    last: float
    fell: tuple[Member, ...]


@cached_per_view
def hosts_gone(view: JobView) -> tuple[Gone, ...]:
    """Who computes, writes or compiles for a while falls later, in the next collective: if nobody has made a
    step since then, it is because of it all the same."""
    found: dict[str, list[Member]] = {}
    for one in view.members:
        if _lost(view, one) and not one.launcher and one.interrupted is None:
            found.setdefault(one.who.host, []).append(one)
    fell = (
        [m for m in view.members if failed(m) and lost_peer(m) and not m.launcher] if found else []
    )
    return tuple(_gone(view, host, tuple(there), fell) for host, there in found.items())


def _lost(view: JobView, member: Member) -> bool:
    """Whether it was through its door. What it did in the last second may not have been told."""
    if member.exit is None or not member.exit.lost:
        return False
    through = view.rolled_at is not None and member.exit.at >= view.rolled_at
    return member.phase >= Phase.JOINED or (member.phase >= Phase.ARRIVED and through)


def _gone(view: JobView, host: str, there: tuple[Member, ...], fell: list[Member]) -> Gone:
    last = ended_at(there[0])
    went_on = any(m.step and m.step_at > last + TOGETHER for m in view.members)
    return Gone(
        host,
        there,
        last,
        tuple(
            m
            for m in fell
            if m.who.host != host
            if abs(failed_at(m) - last) <= TOGETHER or (failed_at(m) > last and not went_on)
        ),
    )
