"""Small members that wait for each other in groups and for messages, for rules' examples and tests."""

from __future__ import annotations

from allaboard.facts.collective_calls import GroupState
from allaboard.facts.job import JobView
from allaboard.facts.member import Member, Op
from allaboard.facts.samples import stalled_job, waiting_member

SINCE = 90.0


def member_in_group_call(
    rank: int, group: str, *ranks: int, in_second_group: bool = True
) -> Member:
    """Return a member in call 21 of this group; with ``others``, also in a second group of the same ranks
    that it has yet to enter."""
    names = ("1", "2") if in_second_group else (group,)
    return waiting_member(
        rank,
        op=Op("all_reduce", 41, SINCE, group, 21),
        groups=tuple(
            GroupState(n, 1, 21 if n == group else 20, SINCE, len(ranks), ranks) for n in names
        ),
    )


def member_in_newest_call(rank: int, *groups: tuple[str, int, int, int]) -> Member:
    """Return a member in the newest of its calls in these groups (name, calls, two ranks)."""
    newest = max(groups, key=lambda g: g[1])
    return waiting_member(
        rank,
        op=Op("all_reduce", 41, SINCE, newest[0], newest[1]),
        groups=tuple(GroupState(n, 1, calls, SINCE, 2, tuple(r)) for n, calls, *r in groups),
    )


def member_waiting_for_peer(rank: int, peer: int, call: str = "recv") -> Member:
    """Return a member that waits for a message of this rank."""
    return waiting_member(rank, op=Op(f"{call} from rank {peer}", 41, SINCE))


def job_waiting_for_peers(peers: dict[int, int], call: str = "recv") -> JobView:
    """Return a job in which each rank waits for a message of another."""
    return stalled_job(*(member_waiting_for_peer(rank, peer, call) for rank, peer in peers.items()))
