"""Hosts that have gone without a word, with those who fell because of it."""

from __future__ import annotations

from typing import NamedTuple

from allaboard.analysis.failures.failure_causality import ended_at, failed_at, has_failed
from allaboard.analysis.failures.lost_peer import has_lost_peer
from allaboard.facts import JobView, Member, Phase
from allaboard.facts.memo import cached_per_view

HOST_LOSS_WINDOW_S = 10.0
"""Seconds between the host's last word and the fall of the first of its peers; also those in which the steps
end that were under way."""


class LostHost(NamedTuple):
    """A host, its members (``there``), its last word (s, monotonic), and who ``fell`` with it on others."""

    host: str
    members: tuple[Member, ...]
    last_heard_at: float
    victims: tuple[Member, ...]


@cached_per_view
def find_lost_hosts(view: JobView) -> tuple[LostHost, ...]:
    """Who computes, writes or compiles for a while falls later, in the next collective: if nobody has made a
    step since then, it is because of it all the same."""
    lost_members: dict[str, list[Member]] = {}
    for member in view.members:
        if _was_lost_in_job(view, member) and not member.launcher and member.interrupted is None:
            lost_members.setdefault(member.who.host, []).append(member)
    victims = (
        [m for m in view.members if has_failed(m) and has_lost_peer(m) and not m.launcher]
        if lost_members
        else []
    )
    return tuple(
        _make_lost_host(view, host, tuple(members), victims)
        for host, members in lost_members.items()
    )


def _was_lost_in_job(view: JobView, member: Member) -> bool:
    """Whether it was through its door. What it did in the last second may not have been told."""
    if member.exit is None or not member.exit.lost:
        return False
    through = view.rolled_at is not None and member.exit.at >= view.rolled_at
    return member.phase >= Phase.JOINED or (member.phase >= Phase.ARRIVED and through)


def _make_lost_host(
    view: JobView, host: str, members: tuple[Member, ...], victims: list[Member]
) -> LostHost:
    last_heard_at = ended_at(members[0])
    job_continued = any(
        m.step and m.step_at > last_heard_at + HOST_LOSS_WINDOW_S for m in view.members
    )
    return LostHost(
        host,
        members,
        last_heard_at,
        tuple(
            m
            for m in victims
            if m.who.host != host
            if abs(failed_at(m) - last_heard_at) <= HOST_LOSS_WINDOW_S
            or (failed_at(m) > last_heard_at and not job_continued)
        ),
    )
