"""Links between hosts that fell silent, by the counters of the kernels at their ends."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from allaboard.facts import Address, JobView, Member, Silence
from allaboard.facts.memo import cached_per_view


class SilentLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link between two hosts on which packets are not acknowledged."""

    kind: str
    """"send" for data, "connect" for the first packets of connections."""
    host: str
    """Host at one end."""
    peer_host: str
    """Host at the other end."""
    cases: tuple[tuple[Member, Silence], ...]
    """Which members wait for which connections, at both ends."""
    lost_direction: tuple[str, str] | None = None
    """(from, to) if packets of only this direction are lost, proven by those of the other one; else None."""


@cached_per_view
def find_silent_links(view: JobView) -> tuple[SilentLink, ...]:
    """Return one silent link for each kind and pair of hosts of the job.

    Connections to hosts outside the job (such as a metrics server) are left out.
    """
    host_by_address = hosts_by_address(view) if any(m.unanswered for m in view.alive) else {}
    cases_by_link: dict[tuple[str, frozenset[str]], list[tuple[Member, str, Silence]]] = (
        defaultdict(list)
    )
    for member in view.alive:
        for silence in member.unanswered:
            peer_host = host_by_address.get(Address.from_endpoint(silence.address).host, "")
            if peer_host and peer_host != member.who.host:
                pair = frozenset((member.who.host, peer_host))
                cases_by_link[silence.kind, pair].append((member, peer_host, silence))
    return tuple(
        SilentLink(
            kind=kind,
            host=cases[0][0].who.host,
            peer_host=cases[0][1],
            cases=tuple((m, s) for m, _, s in cases),
            lost_direction=_lost_direction(cases) if kind == "send" else None,
        )
        for (kind, _), cases in cases_by_link.items()
    )


def _lost_direction(cases: list[tuple[Member, str, Silence]]) -> tuple[str, str] | None:
    """Return the direction that loses packets; the end that hears its peer but gets no answer sends them."""
    directions = {(m.who.host, peer_host) for m, peer_host, s in cases if s.heard}
    return directions.pop() if len(directions) == 1 else None


def hosts_by_address(view: JobView) -> dict[str, str]:
    """Return the host of each known address of the job."""
    by_address = {Address.from_endpoint(k.address).host: k.target for k in view.links}
    for member in view.members:  # of thousands of links few are listed
        declared_address = (
            member.declared.cluster.get(f"{member.who.job}:{member.who.index}")
            if member.declared
            else None
        )
        if declared_address is not None:
            by_address.setdefault(Address.from_endpoint(declared_address).host, member.who.host)
    # The address that a member's data takes counts more than what the cluster declares for it.
    by_data_address = {m.facts.get("data address", ""): m.who.host for m in view.members}
    return {a: h for a, h in (by_address | by_data_address).items() if a and h}
