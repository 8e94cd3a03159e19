"""Faults of the links between hosts, read as a whole: a bad host, a bad pair, or one direction of a pair."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec

from allaboard.analysis.roll_call.job_partition import SETTLE_S
from allaboard.analysis.roll_call.roll_call import RollCall, find_roll_calls
from allaboard.facts import Answer, JobView, Link, Member, Who
from allaboard.facts.samples import arrived_member, led_job, sample_declaration

NO_CONNECTION_ANSWERS = (
    Answer.REFUSED, Answer.SILENT, Answer.UNREACHABLE, Answer.NO_NAME, Answer.CLOSED, Answer.MUTE,
    Answer.FAILED, Answer.HTTP, Answer.OTHER, Answer.STORE, Answer.GRPC,
)  # fmt: skip
"""Answers to a link probe that mean that no connection of ours was made."""


class LinkFault(msgspec.Struct, frozen=True, kw_only=True):
    """What failed links have in common: one host, one pair of hosts, or a partition of all hosts."""

    host: str = ""
    """The host that is in all of the failed links; "" for none."""
    pair: tuple[str, str] = ("", "")
    """The two hosts between which links failed; ("", "") unless neither of the other fields explains them."""
    partitions: tuple[tuple[str, ...], ...] = ()
    """Groups of hosts that cannot reach each other, the largest first; () for none."""
    both_directions: bool
    """True if neither direction works."""
    directions_tried: int = 2
    """Directions of the pair that were probed, 1 or 2."""
    only_outward_fails: bool = False
    """True if the host reaches no other, but can be reached itself."""
    links: tuple[Link, ...]
    """The failed links."""

    @property
    def is_lasting(self) -> bool:
        """Return True if all of the links failed in a second probe, too."""
        return all(k.is_lasting for k in self.links)


def find_link_faults(links: Iterable[Link], answers: tuple[Answer, ...]) -> list[LinkFault]:
    """Return faults that explain the failed links by as few hosts and pairs as possible.

    A host is blamed if every link that touches it failed, there are at least two others, and the others reach
    each other: the host that is in all failures, not its peers (DLRover pairs a suspect with a proven host
    for the same reason).
    """
    links = list(links)
    failed = [k for k in links if k.answer in answers]
    if not failed:
        return []
    parts = _find_partitions(links, failed)
    if parts:
        return [LinkFault(partitions=parts, both_directions=True, links=tuple(failed))]
    failed_links, unexplained = set(failed), dict.fromkeys(failed)
    touching: dict[str, list[Link]] = defaultdict(list)
    for link in links:
        touching[link.source].append(link)
        touching[link.target].append(link)
    working = sum(1 for k in links if k.works)
    faults: list[LinkFault] = []
    suspects = {k.source for k in failed} | {k.target for k in failed}
    # The host with the most failed links first: what it explains is not blamed on its peers as well.
    for host in sorted(suspects, key=lambda h: (-_count_failed(touching[h], failed_links), h)):
        touching_host = touching[host]
        unexplained_here = [k for k in touching_host if k in unexplained]
        peers = {k.source for k in touching_host} | {k.target for k in touching_host}
        inward = [k for k in touching_host if k.target == host]
        outward = [k for k in touching_host if k.source == host]
        is_unreachable = (
            all(k in failed_links for k in inward) and len({k.source for k in inward}) > 1
        )
        reaches_nobody = (
            all(k in failed_links for k in outward) and len({k.target for k in outward}) > 1
        )
        # Where nothing works elsewhere either, the host is no exception, and not to blame.
        working_elsewhere = working - sum(1 for k in touching_host if k.works)
        is_bad_host = (is_unreachable or reaches_nobody) and len(peers) > 2
        if is_bad_host and unexplained_here and working_elsewhere:
            both_directions = all(k in failed_links for k in touching_host)
            faults.append(
                LinkFault(
                    host=host,
                    both_directions=both_directions,
                    only_outward_fails=not is_unreachable,
                    links=tuple(unexplained_here),
                )
            )
            for link in unexplained_here:
                del unexplained[link]
    pairs: dict[tuple[str, str], list[Link]] = defaultdict(list)
    for link in unexplained:
        pairs[min(link.source, link.target), max(link.source, link.target)].append(link)
    for pair, pair_links in pairs.items():
        ways = {(k.source, k.target) for k in links if {k.source, k.target} == set(pair)}
        both_directions = len({(k.source, k.target) for k in pair_links}) == len(ways)
        both_directions = both_directions and len(ways) > 1
        faults.append(
            LinkFault(
                pair=pair,
                both_directions=both_directions,
                directions_tried=len(ways),
                links=tuple(pair_links),
            )
        )
    return faults


def _find_partitions(links: list[Link], failed: list[Link]) -> tuple[tuple[str, ...], ...]:
    """Return the groups of hosts between which no link works, while all links within each group work.

    Return () if the hosts do not divide like that into groups of at least two; a single host is a bad host.
    """
    group = {h: h for k in links for h in (k.source, k.target)}

    def find_root(host: str) -> str:
        """Return the representative of the host's group (union-find)."""
        while group[host] != host:
            # Path halving keeps later look-ups short.
            group[host] = group[group[host]]
            host = group[host]
        return host

    for link in links:
        if link.works:
            group[find_root(link.source)] = find_root(link.target)
    members: dict[str, list[str]] = defaultdict(list)
    for host in group:
        members[find_root(host)].append(host)
    fails_within = any(find_root(k.source) == find_root(k.target) for k in failed)
    if len(members) < 2 or fails_within or min(map(len, members.values())) < 2:
        return ()
    return tuple(sorted((tuple(m) for m in members.values()), key=lambda m: (-len(m), m)))


def _count_failed(touching_host: list[Link], failed_links: set[Link]) -> int:
    return sum(1 for k in touching_host if k in failed_links and k.target)


FAST_LINK_BYTES_PER_S = 3e6
"""Bytes a second above which a link never counts as slow, whatever the others carry."""
NEAR_LINK_RTT_S = 0.02
"""Round trip (s) below which the ends of a link never count as far apart."""


def members_heard_by_all(view: JobView) -> Iterator[tuple[RollCall, Member]]:
    """Yield the held members of roll calls whose findings reach everybody.

    All members are present, or nobody has arrived for SETTLE_S: a member that arrives later would not learn
    what was found before.
    """
    for roll in find_roll_calls(view) if view.leads else ():
        if not roll.missing or view.now - roll.last_arrival >= SETTLE_S:
            yield from ((roll, member) for member in roll.held_members)


def is_heard_by_all(view: JobView, member: Member) -> bool:
    """Return True if what is found about this member now should be reported here.

    That is so on the host where all meet, since it reports to everybody. Elsewhere only after a member has
    waited for that host for ALONE_REPORT_DELAY_S.
    """
    return view.leads or view.now - member.phase_since >= ALONE_REPORT_DELAY_S


ALONE_REPORT_DELAY_S = 4.0
"""Seconds that a member must wait for the leading host before its own host reports findings about it."""


def members_on_hosts(view: JobView, *hosts: str) -> tuple[Who, ...]:
    """Return the members on these hosts."""
    return tuple(m.who for m in view.members if m.who.host in hosts)


def example_four_hosts(*failed_links: Link) -> JobView:
    """Return a view for rules' examples: four hosts, one member each, in which these links failed."""
    names = ["h0", "h1", "h2", "h3"]
    replaced = {(k.source, k.target): k for k in failed_links}
    links = tuple(
        replaced.get((a, b), Link(source=a, target=b, address=f"10.0.0.{names.index(b)}:40000",
                                  answer=Answer.ABOARD, seconds=0.0002, rate=5e8))
        for a in names for b in names if a != b
    )  # fmt: skip
    return led_job(*(example_host_member(i) for i in range(4)), links=links)


def example_host_member(rank: int, **changes: object) -> Member:
    """Return rank ``rank`` of four, held at the gate, on a host of its own."""
    member = arrived_member(
        rank, 4, declared=sample_declaration(rank, 4, place="tcp://h0:29500"), **changes
    )
    renamed = msgspec.structs.replace(member.who, host=f"h{rank}")
    return msgspec.structs.replace(member, who=renamed)


def example_hosts_with(member: Member, *failed_links: Link) -> JobView:
    """Return `example_four_hosts` with this member in the place of the one of its rank."""
    view = example_four_hosts(*failed_links)
    members = tuple(member if m.who.rank == member.who.rank else m for m in view.members)
    return msgspec.structs.replace(view, members=members)


def example_failed_link(
    source: int, target: int, answer: Answer, said: str = "", **changes: object
) -> Link:
    """Return a link of `example_four_hosts` that fails in both of its probes."""
    link = Link(
        source=f"h{source}",
        target=f"h{target}",
        address=f"10.0.0.{target}:40000",
        answer=answer,
        said=said,
        tries=2,
    )
    return msgspec.structs.replace(link, **changes)
