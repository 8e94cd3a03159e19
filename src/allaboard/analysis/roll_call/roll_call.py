"""The roll call: from what the members declared to present, late, gone, missing, and twice there.

Pure. Who belongs to one roll call is in `worlds`.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec

from allaboard.analysis.roll_call.job_partition import (
    SETTLE_S,
    members_by_world_size,
    partition_into_worlds,
)
from allaboard.facts import JobView, Member, Phase
from allaboard.facts.memo import cached_per_view

MAX_CALLED_RANKS = 1_000_000
"""Ranks that are called by name; no job has so many, but a box may hold anything."""
RPC_INIT = "init_rpc"
"""The init of PyTorch's RPC. Who takes part in it may be others than those who join a process group."""


class RollCall(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One roll call. ``size`` is the number of workers that were started together where somebody declared
    it, else the world size that most members declared, ``tied`` where as many declared another; ``here``
    have entered init in this ``round``; ``late`` are alive and have not; ``gone`` ended before they did;
    ``missing`` are ranks that nobody claimed; ``twice`` are groups that claim one rank; ``sizes`` maps each
    world size declared in this round to its members; ``leaving`` go before anybody was let through;
    ``beside``: in an RPC of which some join a process group too, in an order of their own; nobody is missing
    there."""

    size: int
    round: int
    present: tuple[Member, ...]
    late: tuple[Member, ...]
    ended: tuple[Member, ...]
    missing: tuple[int, ...]
    duplicates: tuple[tuple[Member, ...], ...]
    members_by_size: dict[int, tuple[Member, ...]]
    leaving_early: tuple[Member, ...] = ()
    is_tied: bool = False
    is_rpc_only: bool = False

    @property
    def is_complete(self) -> bool:
        return (
            not (self.missing or self.duplicates or self.leaving_early)
            and len(self.members_by_size) == 1
        )

    @property
    @cached_per_view
    def held(self) -> tuple[Member, ...]:
        """Those who stand at the door now."""
        return tuple([m for m in self.present if m.phase is Phase.ARRIVED and m.exit is None])

    @property
    @cached_per_view
    def in_init(self) -> tuple[Member, ...]:
        """Those who are in their framework's init, through the door or because nobody was held at one."""
        return tuple([m for m in self.present if m.phase is Phase.JOINING and m.exit is None])

    @property
    @cached_per_view
    def is_interrupted(self) -> bool:
        """Whether they who stand at the door wait for somebody whose host was interrupted."""
        ended = [m for m in (*self.ended, *self.present) if not m.alive]
        return bool(self.held) and any(m.interrupted is not None for m in ended)

    @property
    def unheard_ranks(self) -> tuple[int, ...]:
        """Missing ranks that no living or ended process can account for."""
        present_ranks = {
            m.declared.rank for m in self.present if m.declared is not None
        }  # of any world size
        unclaimed = tuple([r for r in self.missing if r not in present_ranks])
        unexplained = len(unclaimed) - len(self.late) - len(self.ended)
        return unclaimed[len(unclaimed) - unexplained :] if unexplained > 0 else ()

    def is_settled(self, now: float) -> bool:
        """Whether everybody who may still come is here: before that, a majority may turn."""
        is_enough = not self.late and len(self.present) >= min(self.members_by_size)
        return is_enough or now - self.last_arrival >= SETTLE_S

    @property
    @cached_per_view
    def last_arrival(self) -> float:
        return max((m.phase_since for m in self.held), default=0.0)

    @property
    @cached_per_view
    def first_arrival(self) -> float:
        return min((m.phase_since for m in self.held), default=0.0)


@cached_per_view
def roll_calls(view: JobView) -> tuple[RollCall, ...]:
    """Every roll call that somebody has answered, one a job."""
    processes = [m for m in view.members if not m.launcher]
    declarers = [m for m in processes if m.declared is not None]
    rpc_members = [m for m in declarers if _joins_by_rpc(m)]
    if len(rpc_members) < len(declarers):
        declarers = [m for m in declarers if not _joins_by_rpc(m)]
    else:
        rpc_members = []
    groups = partition_into_worlds(view, processes, declarers)
    rolls = [_make_roll(view, group, processes) for group in groups]
    return tuple(rolls + [_rpc_roll(m) for m in rpc_members if m.phase is Phase.ARRIVED])


def _joins_by_rpc(member: Member) -> bool:
    return member.declared is not None and member.declared.call == RPC_INIT


def has_live_rpc_member(view: JobView) -> bool:
    """Whether somebody who lives came by RPC alone: what it is asked and answers is not seen, nor whether
    it gets on."""
    return any(_joins_by_rpc(m) for m in view.alive)


def _rpc_roll(member: Member) -> RollCall:
    """Whoever is missing at its RPC may stand in the init of its group, and wait for nobody here."""
    assert member.declared is not None
    size = member.declared.world_size
    return RollCall(
        size=size,
        round=member.round,
        present=(member,),
        late=(),
        ended=(),
        missing=(),
        duplicates=(),
        members_by_size={size: (member,)},
        is_rpc_only=True,
    )


def _without_earlier_launch(view: JobView, group: list[Member]) -> list[Member]:
    """Without those of an earlier launch: a launcher, or a sweep over several trainings, has put others in
    the places of all that it had started."""
    launchers = {_launch_key(m) for m in view.members if m.launcher}
    if not launchers or all(m.exit is None for m in group):
        return group
    last_started_at: dict[tuple[int, str], float] = defaultdict(float)
    for m in group:
        last_started_at[_launch_key(m)] = max(last_started_at[_launch_key(m)], m.started_at)
    return [
        m
        for m in group
        if m.exit is None
        or _launch_key(m) not in launchers
        or m.exit.at >= last_started_at[_launch_key(m)]
    ]


def _launch_key(member: Member) -> tuple[int, str]:
    """The worker from which it descends."""
    return member.worker, member.who.host


def _make_roll(view: JobView, group: list[Member], processes: list[Member]) -> RollCall:
    group = _without_earlier_launch(view, group)
    round_ = max([m.round for m in group])
    present = [
        m for m in group if m.round == round_ and (m.exit is None or m.phase > Phase.ARRIVED)
    ]
    # Who has not come again, or has ended, may have had no part in this round's world.
    sizes = members_by_world_size(m for m in group if m.round == round_)
    size = max(sizes, key=lambda s: (s == view.launched > 1, len(sizes[s]), s))
    tied_sizes = [s for s in sizes if len(sizes[s]) == len(sizes[size])]
    rank_owners, duplicates = _claim_ranks(present, size)
    absent = _absent_candidates(view, present, group, processes) if size > 1 else []
    missing = _missing_ranks(rank_owners, min(size, MAX_CALLED_RANKS))
    absent_by_rank = {m.who.rank: m for m in absent if m.who.rank >= 0}
    accountable = [absent_by_rank[r] for r in missing if r in absent_by_rank]
    accountable += [m for m in absent if m.who.rank < 0]
    return RollCall(
        size=size,
        round=round_,
        present=tuple(present),
        late=tuple(m for m in accountable if m.alive),
        ended=tuple(m for m in accountable if not m.alive),
        missing=missing,
        duplicates=duplicates,
        members_by_size={s: tuple(ms) for s, ms in sizes.items()},
        is_tied=len(tied_sizes) > 1 and size != view.launched,
        leaving_early=tuple([m for m in present if m.phase is Phase.LEAVING])
        if view.rolled_at is None
        else (),
    )


def _claim_ranks(
    present: list[Member], size: int
) -> tuple[dict[int, Member], tuple[tuple[Member, ...], ...]]:
    """Who claimed each rank first, and the groups that claim the same."""
    first_claims: dict[int, Member] = {}
    duplicates: dict[int, list[Member]] = {}
    for member in present:
        declared = member.declared
        assert declared is not None
        if declared.world_size != size:  # another world's rank says nothing about this one
            continue
        first_claimant = first_claims.setdefault(declared.rank, member)
        if first_claimant is not member:
            duplicates.setdefault(declared.rank, [first_claimant]).append(member)
    return first_claims, tuple(
        tuple(duplicates[r]) for r in first_claims if r in duplicates
    ) if duplicates else ()


def _absent_candidates(
    view: JobView, present: list[Member], group: list[Member], processes: list[Member]
) -> list[Member]:
    """Who is not here, and may belong to this roll call."""
    if len(present) == len(processes):
        return []
    present_ids, group_ids = {id(m) for m in present}, {id(m) for m in group}
    first_started_at = min([m.started_at for m in present], default=0.0)
    candidates = [
        m
        for m in processes
        if id(m) not in present_ids
        and (m.declared is None or id(m) in group_ids or _joins_by_rpc(m))
        and not (view.joined and m.candidate and not m.alive)  # a program that the worker ran
        and not (
            m.exit is not None and m.candidate and m.exit.at <= first_started_at
        )  # ... before these
    ]
    candidates.sort(key=lambda m: not m.candidate)  # of one rank the worker itself counts
    return candidates


def _missing_ranks(claimed: dict[int, Member], size: int) -> tuple[int, ...]:
    if len(claimed) == size and min(claimed) == 0 and max(claimed) == size - 1:
        return ()
    return tuple([r for r in range(size) if r not in claimed])
