"""Messages between two ranks that somebody waits for, and on whom all of those wait in the end."""

from __future__ import annotations

import re
from typing import NamedTuple

from allaboard.analysis.collectives.group_deadlock import entered_group
from allaboard.facts import Member

_MESSAGE_NAME = re.compile(
    r"(?:Work\.wait for i)?(?P<way>recv|send) (?:from|to) rank (?P<peer>\d+)(?P<tag>, tag \d+)?"
)
"""How the probe calls one: a call that blocks, or the wait for one that is under way."""


class Message(NamedTuple):
    """``way`` is "recv" or "send", ``peer`` the rank of the other side."""

    direction: str
    peer: int
    tag: str

    def can_answer(self, peer_message: Message) -> bool:
        """Whether the two may be the sides of one message, going by way and tag."""
        return self.direction != peer_message.direction and self.tag == peer_message.tag


def parse_message(name: str) -> Message | None:
    """The message that an operation of this name is; None where it is none, or its other side is not said."""
    match = _MESSAGE_NAME.fullmatch(name)
    return Message(match["way"], int(match["peer"]), match["tag"] or "") if match else None


def find_message_knot(waiting: tuple[Member, ...]) -> tuple[Member, ...]:
    """Those of the waiting on whom all others wait in the end: in a circle each waits for a message of the
    next, or one of two waits for the other's message, which is in a call that both must make. Nobody else can
    end their wait. () where there is none, or more than one, or nobody else waits."""
    ranks = {m.who.rank: m for m in waiting}
    messaging = {r: m for r, m in ranks.items() if _awaited_peer(m) is not None}
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
    """The rank of whose side of a message this member waits, in its main thread."""
    awaited_message = (
        parse_message(member.op.name) if member.op is not None and not member.op.beside else None
    )
    return awaited_message.peer if awaited_message is not None else None


def _end_of_chain(ranks: dict[int, Member], start: int) -> frozenset[int]:
    """The circle to which the chain of who asks whom leads from here, or its last two; empty where it leads
    to somebody of whom nothing is known."""
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
    """Whether it is in a call of a group that one of these must make too."""
    group = entered_group(member)
    return group is not None and not required_ranks.isdisjoint(group.ranks)
