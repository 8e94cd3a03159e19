"""The hosts of the job, the links between them, and its parameter servers, as the feed shows them."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from allaboard.analysis.parameter_servers import SERVER_JOBS, cpu_share, find_placement
from allaboard.facts import (
    Activity,
    HostState,
    JobView,
    LinkState,
    LinkSummary,
    RankState,
    ResourceState,
    ServerState,
    Use,
)
from allaboard.feed.host_readings import gpu_states, load_state, store_states, uses_by_owner
from allaboard.feed.rank_states import shown_members

MAX_LINKS = 500
"""Links that are listed one by one."""
_LEVELS = ("host memory", "memory of the cgroup", "/dev/shm", "disk ", "page cache")
"""Beginnings of the readings that are levels of a host; the others count up, or belong to one process."""


def host_states(view: JobView, ranks: tuple[RankState, ...]) -> tuple[HostState, ...]:
    """Return the hosts by name, each with the sums of its processes and what of it is limited."""
    by_host: dict[str, list[RankState]] = defaultdict(list)
    for state in ranks:
        by_host[state.host].append(state)
    uses, gpus = uses_by_owner(view), gpu_states(view)
    levels: dict[str, list[Use]] = defaultdict(list)
    for use in view.uses:
        if use.name.startswith(_LEVELS):
            levels[use.host].append(use)
    return tuple(
        msgspec.structs.replace(
            _host_state(host, states, levels.get(host, []), view.clocks.get(host)),
            gpus=gpus.get(host, ()),
            load=load_state(uses.get((host, 0), {})),
            stores=store_states(uses.get((host, 0), {})),
        )
        for host, states in sorted(by_host.items())
    )


def _host_state(
    host: str, ranks: list[RankState], uses: list[Use], clock_ahead_s: float | None
) -> HostState:
    return HostState(
        host=host,
        ranks=sum(not r.end for r in ranks),
        cpu=round(sum(r.cpu for r in ranks), 3),
        memory_nbytes=sum(r.memory_nbytes for r in ranks),
        received_per_s=sum(r.received_per_s for r in ranks),
        sent_per_s=sum(r.sent_per_s for r in ranks),
        resources=tuple(
            ResourceState(name=use.name, used=use.value, limit=use.limit, rate=use.rate)
            for use in _distinct(uses)
        ),
        clock_ahead_s=round(clock_ahead_s, 3) if clock_ahead_s is not None else None,
        lost=bool(ranks) and all(r.activity is Activity.LOST for r in ranks),
    )


def _distinct(uses: list[Use]) -> list[Use]:
    """Return the uses, of several folders on one disk only the first."""
    seen_levels: set[tuple[float, float]] = set()
    distinct = []
    for use in uses:
        level = use.value, use.limit
        if not use.name.startswith("disk ") or level not in seen_levels:
            seen_levels.add(level)
            distinct.append(use)
    return distinct


def link_states(view: JobView) -> tuple[tuple[LinkState, ...], LinkSummary | None]:
    """Return the links, failed ones first, and the summary of those that are not listed."""
    ordered = sorted(view.links, key=lambda link: (link.works, -link.seconds))
    listed = tuple(
        LinkState(
            source=link.source,
            target=link.target,
            works=link.works,
            address=link.address,
            answer="" if link.works else link.description,
            seconds=link.seconds,
            rate=link.rate,
        )
        for link in ordered[:MAX_LINKS]
    )
    usual_delays = view.usual
    summary = (
        LinkSummary(count=usual_delays.count, seconds=usual_delays.seconds, rate=usual_delays.rate)
        if usual_delays is not None
        else None
    )
    return listed, summary


def server_states(view: JobView) -> tuple[ServerState, ...]:
    """Return the parameter servers; () in a job that has none."""
    servers = [m for m in shown_members(view) if m.who.job in SERVER_JOBS]
    placement = find_placement(view) if servers else {}
    states = []
    for member in servers:
        placed = placement.get(f"{member.who.job}:{member.who.index}")
        states.append(
            ServerState(
                name=member.who.name,
                host=member.who.host,
                alive=member.alive,
                busy=round(min(1.0, cpu_share(member.load)), 3) if member.alive else 0.0,
                received_per_s=sum(p.received for p in member.pairs),
                sent_per_s=sum(p.sent for p in member.pairs),
                variables=placed.variables if placed is not None else 0,
                nbytes=placed.bytes if placed is not None else 0,
                workers=sum(p.connections > 0 for p in member.pairs),
            )
        )
    return tuple(states)
