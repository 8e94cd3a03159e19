"""Outliers among the places of many ranks: those that the others wait for."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from allaboard.analysis.stacks.stack_classifier import Spot
from allaboard.analysis.stacks.stack_groups import StackGroup
from allaboard.facts import Frame

PEER_WAIT_SPOTS = (
    Spot.GATE,
    Spot.INIT,
    Spot.GROUP,
    Spot.COLLECTIVE,
    Spot.STEP,
    Spot.SERVER,
    Spot.SESSION,
    Spot.SCHEDULED,
)


"""Kinds of places in which a process waits for the other members of its job."""


class Outliers(msgspec.Struct, frozen=True):
    """The groups of ranks that wait for their peers, and those that are not where most ranks are."""

    waiting: tuple[StackGroup, ...]
    """Groups that wait for their peers."""
    outliers: tuple[StackGroup, ...]
    """Groups that are not where most ranks are, the smallest first."""
    are_elsewhere: bool
    """True if the outliers do not wait for peers at all; False if they wait at another place."""


def find_outliers(groups: Iterable[StackGroup]) -> Outliers:
    """Return the groups that seem to be waited for.

    If some ranks wait for peers and others do not, these are the others. If all wait, they are those that
    wait at another place than the majority. Otherwise there are none: a single sample of ranks that compute
    rightly shows them at many places. A server serves as long as its job runs, and so waits for nobody.
    """
    readable = [g for g in groups if g.frames and g.spot is not Spot.SERVER]
    waiting = [g for g in readable if g.spot in PEER_WAIT_SPOTS]
    not_waiting = [g for g in readable if g.spot not in PEER_WAIT_SPOTS]
    if waiting and not_waiting:
        return Outliers(tuple(waiting), _smallest_first(not_waiting), True)
    # All wait for peers: they may still wait in different calls, of which the rarer is the mistake.
    places: dict[tuple[Spot, Frame | None], list[StackGroup]] = {}
    # A server waits for whoever gives it work, which is at another place by right.
    callers = [g for g in waiting if g.spot is not Spot.SERVER]
    for group in callers:
        places.setdefault((group.spot, group.user), []).append(group)
    total = sum(len(g.ranks) for g in callers)
    largest = max(places.values(), key=_count_ranks, default=[])
    if len(places) < 2 or _count_ranks(largest) * 2 <= total:
        return Outliers(tuple(waiting), (), False)
    return Outliers(
        tuple(largest), _smallest_first([g for g in callers if g not in largest]), False
    )


def _count_ranks(groups: list[StackGroup]) -> int:
    return sum(len(g.ranks) for g in groups)


def _smallest_first(groups: list[StackGroup]) -> tuple[StackGroup, ...]:
    return tuple(sorted(groups, key=lambda g: (len(g.ranks), g.ranks[0])))
