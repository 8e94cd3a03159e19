"""The roll call: which members are present, late, ended, missing, or claim one rank twice.

`partition_into_worlds` decides which members belong to one roll call.
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
"""Most ranks that a roll call covers; a corrupt black box may declare any number."""
RPC_INIT = "init_rpc"
"""The init of PyTorch's RPC. Its participants may be others than those that join a process group."""


class RollCall(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The roll call of one world in one round of init."""

    size: int
    """World size: the number of workers started together if one declared it, else the most frequent."""
    round: int
    """Round of init, from 1."""
    present: tuple[Member, ...]
    """Members that have entered init in this round."""
    late: tuple[Member, ...]
    """Live members that have not entered it yet."""
    ended: tuple[Member, ...]
    """Members that ended before they entered it."""
    missing: tuple[int, ...]
    """Ranks that no member has claimed."""
    duplicates: tuple[tuple[Member, ...], ...]
    """Groups of members that claim the same rank."""
    members_by_size: dict[int, tuple[Member, ...]]
    """Members by the world size that they declared in this round."""
    leaving_early: tuple[Member, ...] = ()
    """Members that exit before anybody was let through."""
    is_tied: bool = False
    """True if as many members declared another world size."""
    is_rpc_only: bool = False
    """True for an RPC some of whose members join a process group first, so that nobody counts as missing."""

    @property
    def is_complete(self) -> bool:
        """Return True if each rank is claimed once, with one world size, and nobody leaves."""
        return (
            not (self.missing or self.duplicates or self.leaving_early)
            and len(self.members_by_size) == 1
        )

    @property
    @cached_per_view
    def held_members(self) -> tuple[Member, ...]:
        """Return the members held at the gate now."""
        return tuple([m for m in self.present if m.phase is Phase.ARRIVED and m.exit is None])

    @property
    @cached_per_view
    def in_init(self) -> tuple[Member, ...]:
        """Return the members inside their framework's own init, whether or not the gate held them before."""
        return tuple([m for m in self.present if m.phase is Phase.JOINING and m.exit is None])

    @property
    @cached_per_view
    def is_interrupted(self) -> bool:
        """Return True if the held members wait for a member whose host was interrupted."""
        ended = [m for m in (*self.ended, *self.present) if not m.alive]
        return bool(self.held_members) and any(m.interrupted is not None for m in ended)

    @property
    def unheard_ranks(self) -> tuple[int, ...]:
        """Return the missing ranks that no live or ended process can account for.

        One of two processes that claim the same rank accounts for a missing one.
        """
        present_ranks = {
            m.declared.rank for m in self.present if m.declared is not None
        }  # of any world size
        unclaimed = tuple([r for r in self.missing if r not in present_ranks])
        surplus = sum(len(twins) - 1 for twins in self.duplicates)
        unexplained = len(unclaimed) - len(self.late) - len(self.ended) - surplus
        return unclaimed[len(unclaimed) - unexplained :] if unexplained > 0 else ()

    def is_settled(self, now: float) -> bool:
        """Return True if nobody is late, or no one arrived for SETTLE_S; until then a majority may change."""
        is_enough = not self.late and len(self.present) >= min(self.members_by_size)
        return is_enough or now - self.last_arrival >= SETTLE_S

    @property
    @cached_per_view
    def last_arrival(self) -> float:
        """Return when the last held member arrived (s, CLOCK_MONOTONIC); 0.0 if none is held."""
        return max((m.phase_since for m in self.held_members), default=0.0)

    @property
    @cached_per_view
    def first_arrival(self) -> float:
        """Return when the first held member arrived (s, CLOCK_MONOTONIC); 0.0 if none is held."""
        return min((m.phase_since for m in self.held_members), default=0.0)


@cached_per_view
def find_roll_calls(view: JobView) -> tuple[RollCall, ...]:
    """Return every roll call that a member has answered, one per world."""
    processes = [m for m in view.members if not m.launcher]
    declarers = [m for m in processes if m.declared is not None]
    # An RPC may have other participants than a process group. It counts as the roll call only if
    # nobody joins a group.
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
    """Return True if a live member joined by RPC: its requests and its progress cannot be seen."""
    return any(_joins_by_rpc(m) for m in view.alive)


def _rpc_roll(member: Member) -> RollCall:
    """Return the roll call of one member in RPC; a rank missing there may be in its group's init."""
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
    """Return the group without members of an earlier launch.

    A launcher, or a sweep over several trainings, has replaced all the processes that it had started.
    """
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
        or m.exit.ended_at >= last_started_at[_launch_key(m)]
    ]


def _launch_key(member: Member) -> tuple[int, str]:
    """Return the worker from which the member descends, and its host."""
    return member.worker, member.who.host


def _make_roll(view: JobView, group: list[Member], processes: list[Member]) -> RollCall:
    group = _without_earlier_launch(view, group)
    round_ = max([m.round for m in group])
    present = [
        m for m in group if m.round == round_ and (m.exit is None or m.phase > Phase.ARRIVED)
    ]
    # Members of an earlier round, or that have ended, may have had no part in this round's world.
    sizes = members_by_world_size(m for m in group if m.round == round_)
    # The number of workers that were started together decides; then the most frequent size; then the
    # largest.
    size = max(sizes, key=lambda s: (s == view.launched > 1, len(sizes[s]), s))
    tied_sizes = [s for s in sizes if len(sizes[s]) == len(sizes[size])]
    rank_owners, duplicates = _claim_ranks(present, size)
    absent = _absent_candidates(view, present, group, processes) if size > 1 else []
    missing = _missing_ranks(rank_owners, min(size, MAX_CALLED_RANKS))
    absent_by_rank = {m.who.rank: m for m in absent if m.who.rank >= 0}
    # A member with a known rank accounts for its own missing rank; one without may be any of them.
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
    """Return the member that claimed each rank first, and the groups of members that claim the same rank."""
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
    """Return the members that are not present, and may belong to this roll call."""
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
        # A program that was over before any of these members started cannot be one of the missing.
        and not (m.exit is not None and m.candidate and m.exit.ended_at <= first_started_at)
    ]
    candidates.sort(key=lambda m: not m.candidate)  # of one rank the worker itself counts
    return candidates


def _missing_ranks(claimed: dict[int, Member], size: int) -> tuple[int, ...]:
    if len(claimed) == size and min(claimed) == 0 and max(claimed) == size - 1:
        return ()
    return tuple([r for r in range(size) if r not in claimed])
