"""The roll call: from what the members declared to present, late, gone, missing, and twice there.

Pure. Who belongs to one roll call is in `worlds`.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec

from allaboard.analysis.roll_call.job_partition import SETTLE, sizes_of, worlds
from allaboard.facts import JobView, Member, Phase
from allaboard.facts.memo import cached_per_view

LARGEST = 1_000_000
"""Ranks that are called by name; no job has so many, but a box may hold anything."""
RPC = "init_rpc"
"""The init of PyTorch's RPC. Who takes part in it may be others than those who join a process group."""


class Roll(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One roll call. ``size`` is the number of workers that were started together where somebody declared
    it, else the world size that most members declared, ``tied`` where as many declared another; ``here``
    have entered init in this ``round``; ``late`` are alive and have not; ``gone`` ended before they did;
    ``missing`` are ranks that nobody claimed; ``twice`` are groups that claim one rank; ``sizes`` maps each
    world size declared in this round to its members; ``leaving`` go before anybody was let through;
    ``beside``: in an RPC of which some join a process group too, in an order of their own; nobody is missing
    there."""

    size: int
    round: int
    here: tuple[Member, ...]
    late: tuple[Member, ...]
    gone: tuple[Member, ...]
    missing: tuple[int, ...]
    twice: tuple[tuple[Member, ...], ...]
    sizes: dict[int, tuple[Member, ...]]
    leaving: tuple[Member, ...] = ()
    tied: bool = False
    beside: bool = False

    @property
    def complete(self) -> bool:
        return not (self.missing or self.twice or self.leaving) and len(self.sizes) == 1

    @property
    @cached_per_view
    def held(self) -> tuple[Member, ...]:
        """Those who stand at the door now."""
        return tuple([m for m in self.here if m.phase is Phase.ARRIVED and m.exit is None])

    @property
    @cached_per_view
    def inside(self) -> tuple[Member, ...]:
        """Those who are in their framework's init, through the door or because nobody was held at one."""
        return tuple([m for m in self.here if m.phase is Phase.JOINING and m.exit is None])

    @property
    @cached_per_view
    def interrupted(self) -> bool:
        """Whether they who stand at the door wait for somebody whose host was interrupted."""
        ended = [m for m in (*self.gone, *self.here) if not m.alive]
        return bool(self.held) and any(m.interrupted is not None for m in ended)

    @property
    def never_heard_of(self) -> tuple[int, ...]:
        """Missing ranks that no living or ended process can account for."""
        here = {m.declared.rank for m in self.here if m.declared is not None}  # of any world size
        unclaimed = tuple([r for r in self.missing if r not in here])
        spare = len(unclaimed) - len(self.late) - len(self.gone)
        return unclaimed[len(unclaimed) - spare :] if spare > 0 else ()

    def settled(self, now: float) -> bool:
        """Whether everybody who may still come is here: before that, a majority may turn."""
        enough = not self.late and len(self.here) >= min(self.sizes)
        return enough or now - self.last_arrival >= SETTLE

    @property
    @cached_per_view
    def last_arrival(self) -> float:
        return max((m.phase_since for m in self.held), default=0.0)

    @property
    @cached_per_view
    def first_arrival(self) -> float:
        return min((m.phase_since for m in self.held), default=0.0)


@cached_per_view
def roll_calls(view: JobView) -> tuple[Roll, ...]:
    """Every roll call that somebody has answered, one a job."""
    people = [m for m in view.members if not m.launcher]
    came = [m for m in people if m.declared is not None]
    beside = [m for m in came if _rpc(m)]
    if len(beside) < len(came):
        came = [m for m in came if not _rpc(m)]
    else:
        beside = []
    groups = worlds(view, people, came)
    rolls = [_roll(view, group, people) for group in groups]
    return tuple(rolls + [_beside(m) for m in beside if m.phase is Phase.ARRIVED])


def _rpc(member: Member) -> bool:
    return member.declared is not None and member.declared.call == RPC


def in_rpc(view: JobView) -> bool:
    """Whether somebody who lives came by RPC alone: what it is asked and answers is not seen, nor whether
    it gets on."""
    return any(_rpc(m) for m in view.alive)


def _beside(member: Member) -> Roll:
    """Whoever is missing at its RPC may stand in the init of its group, and wait for nobody here."""
    assert member.declared is not None
    size = member.declared.world_size
    return Roll(
        size=size,
        round=member.round,
        here=(member,),
        late=(),
        gone=(),
        missing=(),
        twice=(),
        sizes={size: (member,)},
        beside=True,
    )


def _present(view: JobView, group: list[Member]) -> list[Member]:
    """Without those of an earlier launch: a launcher, or a sweep over several trainings, has put others in
    the places of all that it had started."""
    launchers = {_launch(m) for m in view.members if m.launcher}
    if not launchers or all(m.exit is None for m in group):
        return group
    last: dict[tuple[int, str], float] = defaultdict(float)
    for m in group:
        last[_launch(m)] = max(last[_launch(m)], m.started_at)
    return [
        m
        for m in group
        if m.exit is None or _launch(m) not in launchers or m.exit.at >= last[_launch(m)]
    ]


def _launch(member: Member) -> tuple[int, str]:
    """The worker from which it descends."""
    return member.worker, member.who.host


def _roll(view: JobView, group: list[Member], people: list[Member]) -> Roll:
    group = _present(view, group)
    round_ = max([m.round for m in group])
    here = [m for m in group if m.round == round_ and (m.exit is None or m.phase > Phase.ARRIVED)]
    # Who has not come again, or has ended, may have had no part in this round's world.
    sizes = sizes_of(m for m in group if m.round == round_)
    size = max(sizes, key=lambda s: (s == view.launched > 1, len(sizes[s]), s))
    most = [s for s in sizes if len(sizes[s]) == len(sizes[size])]
    by_rank, twice = _claimed(here, size)
    others = _others(view, here, group, people) if size > 1 else []
    missing = _missing(by_rank, min(size, LARGEST))
    by_index = {m.who.rank: m for m in others if m.who.rank >= 0}
    relevant = [by_index[r] for r in missing if r in by_index]
    relevant += [m for m in others if m.who.rank < 0]
    return Roll(
        size=size,
        round=round_,
        here=tuple(here),
        late=tuple(m for m in relevant if m.alive),
        gone=tuple(m for m in relevant if not m.alive),
        missing=missing,
        twice=twice,
        sizes={s: tuple(ms) for s, ms in sizes.items()},
        tied=len(most) > 1 and size != view.launched,
        leaving=tuple([m for m in here if m.phase is Phase.LEAVING])
        if view.rolled_at is None
        else (),
    )


def _claimed(
    here: list[Member], size: int
) -> tuple[dict[int, Member], tuple[tuple[Member, ...], ...]]:
    """Who claimed each rank first, and the groups that claim the same."""
    first: dict[int, Member] = {}
    several: dict[int, list[Member]] = {}
    for member in here:
        told = member.declared
        assert told is not None
        if told.world_size != size:  # another world's rank says nothing about this one
            continue
        before = first.setdefault(told.rank, member)
        if before is not member:
            several.setdefault(told.rank, [before]).append(member)
    return first, tuple(tuple(several[r]) for r in first if r in several) if several else ()


def _others(
    view: JobView, here: list[Member], group: list[Member], people: list[Member]
) -> list[Member]:
    """Who is not here, and may belong to this roll call."""
    if len(here) == len(people):
        return []
    present, ours = {id(m) for m in here}, {id(m) for m in group}
    began = min([m.started_at for m in here], default=0.0)
    found = [
        m
        for m in people
        if id(m) not in present
        and (m.declared is None or id(m) in ours or _rpc(m))
        and not (view.joined and m.candidate and not m.alive)  # a program that the worker ran
        and not (m.exit is not None and m.candidate and m.exit.at <= began)  # ... before these
    ]
    found.sort(key=lambda m: not m.candidate)  # of one rank the worker itself counts
    return found


def _missing(claimed: dict[int, Member], size: int) -> tuple[int, ...]:
    if len(claimed) == size and min(claimed) == 0 and max(claimed) == size - 1:
        return ()
    return tuple([r for r in range(size) if r not in claimed])
