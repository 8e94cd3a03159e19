"""Hosts that were lost without notice, and the members that failed because of it."""

from __future__ import annotations

from typing import NamedTuple

from allaboard.analysis.failures.failure_causality import ended_at, failed_at, has_failed
from allaboard.analysis.failures.lost_peer import has_lost_peer
from allaboard.facts import JobView, Member, Phase
from allaboard.facts.memo import cached_per_view

HOST_LOSS_WINDOW_S = 10.0
"""Most seconds between the last message of a host and the failure of its first peer. Steps that were under
way when the host was lost end within this time, too."""


class LostHost(NamedTuple):
    """A host that was lost while its members took part in the job."""

    host: str
    """Name of the host."""
    members: tuple[Member, ...]
    """The members of the host."""
    last_heard_at: float
    """Time of the last message of the host (s, CLOCK_MONOTONIC)."""
    victims: tuple[Member, ...]
    """Members of other hosts that failed because of it."""


@cached_per_view
def find_lost_hosts(view: JobView) -> tuple[LostHost, ...]:
    """Return the lost hosts with their victims.

    A member that computes, writes or compiles for a while fails later, in its next collective. It is a victim
    all the same if no member has done a step in the meantime.
    """
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
    """Return True if the member was lost after the gate of the roll call had let it through.

    What it did in the last second before the loss may not have been reported, so its phase may lag behind.
    """
    if member.exit is None or not member.exit.lost:
        return False
    through = view.rolled_at is not None and member.exit.ended_at >= view.rolled_at
    return member.phase >= Phase.JOINED or (member.phase >= Phase.ARRIVED and through)


def _make_lost_host(
    view: JobView, host: str, members: tuple[Member, ...], victims: list[Member]
) -> LostHost:
    last_heard_at = ended_at(members[0])
    # A step done well after the loss shows that the job did not need that host any more.
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
