"""Which links between hosts fell silent, by what the kernels at their ends count."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from allaboard.facts import Address, JobView, Member, Silence
from allaboard.facts.memo import cached_per_view


class SilentLink(msgspec.Struct, frozen=True, kw_only=True):
    """Between the hosts ``one`` and ``other``: data (``kind`` "send") or first packets ("connect") that
    nobody acknowledges. ``cases`` are who waits for which connection, of both ends. ``lost``: (from, to)
    where packets of that direction alone are lost, which is proven by those that come the other way."""

    kind: str
    one: str
    other: str
    cases: tuple[tuple[Member, Silence], ...]
    lost: tuple[str, str] | None = None


@cached_per_view
def silent_links(view: JobView) -> tuple[SilentLink, ...]:
    """One for each pair of hosts of the job and kind. Other programs' hosts, a metrics server, say, are no
    part of the job."""
    where = hosts(view) if any(m.unanswered for m in view.alive) else {}
    found: dict[tuple[str, frozenset[str]], list[tuple[Member, str, Silence]]] = defaultdict(list)
    for member in view.alive:
        for silence in member.unanswered:
            other = where.get(Address.from_endpoint(silence.address).host, "")
            if other and other != member.who.host:
                pair = frozenset((member.who.host, other))
                found[silence.kind, pair].append((member, other, silence))
    return tuple(
        SilentLink(
            kind=kind,
            one=cases[0][0].who.host,
            other=cases[0][1],
            cases=tuple((m, s) for m, _, s in cases),
            lost=_lost(cases) if kind == "send" else None,
        )
        for (kind, _), cases in found.items()
    )


def _lost(cases: list[tuple[Member, str, Silence]]) -> tuple[str, str] | None:
    """Who still hears the other end, and is not answered, is not heard there."""
    ways = {(m.who.host, other) for m, other, s in cases if s.heard}
    return ways.pop() if len(ways) == 1 else None


def hosts(view: JobView) -> dict[str, str]:
    """Addresses of the job's hosts, and whose they are."""
    known = {Address.from_endpoint(k.address).host: k.target for k in view.links}
    for one in view.members:  # of thousands of links few are listed
        own = one.declared.cluster.get(f"{one.who.job}:{one.who.index}") if one.declared else None
        if own is not None:
            known.setdefault(Address.from_endpoint(own).host, one.who.host)
    told = {m.facts.get("data address", ""): m.who.host for m in view.members}
    return {a: h for a, h in (known | told).items() if a and h}
