"""The links between hosts, read as a whole: is it a host, a pair, or one direction of a pair."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec

from allaboard.analysis.roll_call.job_partition import SETTLE_S
from allaboard.analysis.roll_call.roll_call import RollCall, roll_calls
from allaboard.facts import Answer, JobView, Link, Member, Who
from allaboard.facts.samples import declared, gathering, held

CONNECTS = (
    Answer.REFUSED, Answer.SILENT, Answer.UNREACHABLE, Answer.NO_NAME, Answer.CLOSED, Answer.MUTE,
    Answer.FAILED, Answer.HTTP, Answer.OTHER, Answer.STORE, Answer.GRPC,
)  # fmt: skip
"""Answers that mean that no connection of ours came about."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """What the failed links have in common: ``host`` where one host is in all of them, ``parts`` where the
    hosts fall into groups that reach nobody of another, the largest first; else the pair. ``both`` where
    neither direction works, ``ways`` how many were tried; ``out`` where the host reaches nobody, and is
    reached itself; ``links`` are the failed ones."""

    host: str = ""
    pair: tuple[str, str] = ("", "")
    parts: tuple[tuple[str, ...], ...] = ()
    both: bool
    ways: int = 2
    out: bool = False
    links: tuple[Link, ...]

    @property
    def lasting(self) -> bool:
        """Whether all of them failed in a second trial too."""
        return all(k.lasting for k in self.links)


def faults(links: Iterable[Link], answers: tuple[Answer, ...]) -> list[Fault]:
    """The failed links, explained by as few hosts and pairs as will do.

    A host is named where every link that touches it failed, there are at least two others, and the
    others reach each other: the host that is in all failures, not its peers (DLRover pairs a suspect
    with a proven host for the same reason).
    """
    links = list(links)
    failed = [k for k in links if k.answer in answers]
    if not failed:
        return []
    parts = _parts(links, failed)
    if parts:
        return [Fault(parts=parts, both=True, links=tuple(failed))]
    bad, left = set(failed), dict.fromkeys(failed)
    touching: dict[str, list[Link]] = defaultdict(list)
    for link in links:
        touching[link.source].append(link)
        touching[link.target].append(link)
    working = sum(1 for k in links if k.works)
    found: list[Fault] = []
    suspects = {k.source for k in failed} | {k.target for k in failed}
    for host in sorted(suspects, key=lambda h: (-_count(touching[h], bad), h)):
        around = touching[host]
        mine = [k for k in around if k in left]
        peers = {k.source for k in around} | {k.target for k in around}
        inward = [k for k in around if k.target == host]
        outward = [k for k in around if k.source == host]
        whole = all(k in bad for k in inward) and len({k.source for k in inward}) > 1
        mute = all(k in bad for k in outward) and len({k.target for k in outward}) > 1
        elsewhere = working - sum(1 for k in around if k.works)
        if (whole or mute) and len(peers) > 2 and mine and elsewhere:
            both = all(k in bad for k in around)
            found.append(Fault(host=host, both=both, out=not whole, links=tuple(mine)))
            for link in mine:
                del left[link]
    pairs: dict[tuple[str, str], list[Link]] = defaultdict(list)
    for link in left:
        pairs[min(link.source, link.target), max(link.source, link.target)].append(link)
    for pair, some in pairs.items():
        ways = {(k.source, k.target) for k in links if {k.source, k.target} == set(pair)}
        both = len({(k.source, k.target) for k in some}) == len(ways)
        both = both and len(ways) > 1
        found.append(Fault(pair=pair, both=both, ways=len(ways), links=tuple(some)))
    return found


def _parts(links: list[Link], failed: list[Link]) -> tuple[tuple[str, ...], ...]:
    """The groups of two hosts and more that the hosts fall into, where every link within one works and
    none to another; nothing where they do not. A host by itself is a bad host."""
    group = {h: h for k in links for h in (k.source, k.target)}

    def of(host: str) -> str:
        while group[host] != host:
            group[host] = group[group[host]]  # half the way for who comes next
            host = group[host]
        return host

    for link in links:
        if link.works:
            group[of(link.source)] = of(link.target)
    members: dict[str, list[str]] = defaultdict(list)
    for host in group:
        members[of(host)].append(host)
    within = any(of(k.source) == of(k.target) for k in failed)
    if len(members) < 2 or within or min(map(len, members.values())) < 2:
        return ()
    return tuple(sorted((tuple(m) for m in members.values()), key=lambda m: (-len(m), m)))


def _count(around: list[Link], left: set[Link]) -> int:
    return sum(1 for k in around if k in left and k.target)


RATE = 3e6
"""Bytes/s: above it a link is not called slow, whatever the others do."""
DELAY = 0.02
"""Seconds of round trip: below it a link is not called far."""


def heard_by_all(view: JobView) -> Iterator[tuple[RollCall, Member]]:
    """Members of roll calls whose findings reach everybody: all are here, or no more come for now.
    Who comes after that would not be told."""
    for roll in roll_calls(view) if view.leads else ():
        if not roll.missing or view.now - roll.last_arrival >= SETTLE_S:
            yield from ((roll, member) for member in roll.held)


def heard(view: JobView, member: Member) -> bool:
    """Whether all learn what is found of this member now: where all meet; elsewhere only once it has
    waited for that place, which tells the same to everybody, for a while."""
    return view.leads or view.now - member.phase_since >= ALONE


ALONE = 4.0
"""Seconds."""


def on(view: JobView, *hosts: str) -> tuple[Who, ...]:
    """The members of these hosts."""
    return tuple(m.who for m in view.members if m.who.host in hosts)


def four(*wrong: Link) -> JobView:
    """A view for rules' examples: four hosts, one member each, all links tried; ``wrong`` replace
    those that work."""
    names = ["h0", "h1", "h2", "h3"]
    replaced = {(k.source, k.target): k for k in wrong}
    links = tuple(
        replaced.get((a, b), Link(source=a, target=b, address=f"10.0.0.{names.index(b)}:40000",
                                  answer=Answer.ABOARD, seconds=0.0002, rate=5e8))
        for a in names for b in names if a != b
    )  # fmt: skip
    return gathering(
        *(on_host(i) for i in range(4)), joined=True, leads=True, launched=1, links=links
    )


def on_host(rank: int, **changes: object) -> Member:
    """Rank ``rank`` of four at the door, on a host of its own."""
    member = held(rank, 4, declared=declared(rank, 4, place="tcp://h0:29500"), **changes)
    who = msgspec.structs.replace(member.who, host=f"h{rank}")
    return msgspec.structs.replace(member, who=who)


def failed(source: int, target: int, answer: Answer, said: str = "", **changes: object) -> Link:
    """A link of `four` that does not work, nor when it is tried again."""
    link = Link(
        source=f"h{source}",
        target=f"h{target}",
        address=f"10.0.0.{target}:40000",
        answer=answer,
        said=said,
        tries=2,
    )
    return msgspec.structs.replace(link, **changes)
