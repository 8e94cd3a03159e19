"""Point-to-point messages that members wait for, and the members on whom all of them wait in the end."""

from __future__ import annotations

from typing import NamedTuple

from allaboard.analysis.collectives.group_deadlock import entered_group
from allaboard.facts import Member
from allaboard.late_pattern import compile_late

_MESSAGE_NAME = compile_late(
    r"(?:Work\.wait for i)?(?P<way>recv|send) (?:from|to) rank (?P<peer>\d+)(?P<tag>, tag \d+)?"
)
"""Name that the probe gives to a message: a blocking call, or the wait for an asynchronous one."""


class Message(NamedTuple):
    """One side of a message between two ranks."""

    direction: str
    """"recv" or "send"."""
    peer: int
    """Rank of the other side."""
    tag: str
    """Tag as the probe writes it (", tag 3"); "" if there is none."""

    def can_answer(self, peer_message: Message) -> bool:
        """Return True if the two may be the two sides of one message, judged by direction and tag."""
        return self.direction != peer_message.direction and self.tag == peer_message.tag


def parse_message(name: str) -> Message | None:
    """Return the message that an operation of this name exchanges; None if it is none, or names no peer."""
    match = _MESSAGE_NAME.fullmatch(name)
    return Message(match["way"], int(match["peer"]), match["tag"] or "") if match else None


def find_message_knot(waiting: tuple[Member, ...]) -> tuple[Member, ...]:
    """Return the waiting members on whom all others wait in the end, since nobody else can end their wait.

    They form a cycle in which each waits for a message of the next; or they are two, of which one waits for
    the other's message, and the other is in a call that both must make. Return () if there is no such knot or
    more than one, or if nobody else waits.
    """
    ranks = {m.who.rank: m for m in waiting}
    messaging = {r: m for r, m in ranks.items() if _awaited_peer(m) is not None}
    # Two members that claim one rank: messages cannot be told apart by ranks.
    if len(ranks) < len(waiting):
        return ()
    ends = {_end_of_chain(ranks, rank) for rank in messaging}
    if len(ends) != 1:
        return ()
    end = ends.pop()
    bystanders = [m for r, m in ranks.items() if r not in end and r not in messaging]
    if not end or len(end) == len(ranks) or not all(_waits_for_any_of(m, end) for m in bystanders):
        return ()
    return tuple(ranks[r] for r in sorted(end))


def _awaited_peer(member: Member) -> int | None:
    """Return the rank from which the member's main thread waits for a message (or its receipt), or None."""
    awaited_message = (
        parse_message(member.op.name) if member.op is not None and not member.op.beside else None
    )
    return awaited_message.peer if awaited_message is not None else None


def _end_of_chain(ranks: dict[int, Member], start: int) -> frozenset[int]:
    """Follow the chain of awaited peers from ``start``; return the cycle at its end, or its last two ranks.

    Return an empty set if the chain leads to a rank of which nothing is known.
    """
    path = [start]
    while True:
        rank = path[-1]
        peer = _awaited_peer(ranks[rank])
        if peer is None:
            previous_rank = path[-2]
            return (
                frozenset((previous_rank, rank))
                if _waits_for_any_of(ranks[rank], {previous_rank})
                else frozenset()
            )
        if peer not in ranks:
            return frozenset()
        if peer in path:
            return frozenset(path[path.index(peer) :])
        path.append(peer)


def _waits_for_any_of(member: Member, required_ranks: frozenset[int] | set[int]) -> bool:
    """Return True if the member is in a call of a group that one of these ranks must make too."""
    group = entered_group(member)
    return group is not None and not required_ranks.isdisjoint(group.ranks)
