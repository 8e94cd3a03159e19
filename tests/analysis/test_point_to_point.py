"""On whom all wait in the end, who wait for messages."""

from __future__ import annotations

import pytest

from allaboard.analysis.collectives.point_to_point import Message, find_message_knot, parse_message
from allaboard.facts import GroupState, Member, Op
from allaboard.facts.samples import waiting_member


def asks(rank: int, name: str, *, beside: bool = False) -> Member:
    return waiting_member(rank, op=Op(name, 41, 90.0, beside=beside))


def reduces(rank: int, *ranks: int) -> Member:
    state = GroupState("1", 1, 21, 90.0, len(ranks), ranks)
    return waiting_member(rank, op=Op("all_reduce", 41, 90.0, "1", 21), groups=(state,))


def test_the_names_of_messages() -> None:
    assert parse_message("recv from rank 12, tag 3") == Message("recv", 12, ", tag 3")
    assert parse_message("send to rank 0") == Message("send", 0, "")
    assert parse_message("Work.wait for irecv from rank 2") == Message("recv", 2, "")
    assert (
        parse_message("recv") is None
        and parse_message("Work.wait") is None
        and parse_message("all_reduce") is None
    )


@pytest.mark.parametrize(
    ("members", "ranks"),
    [
        # A pipeline: of two neighbours one has left out a message; the others only follow.
        ((asks(0, "recv from rank 1"), asks(1, "recv from rank 2"),
          asks(2, "recv from rank 1"), asks(3, "recv from rank 2")), (1, 2)),
        # A ring of three, and one who waits for one of them.
        ((asks(0, "recv from rank 1"), asks(1, "send to rank 2"), asks(2, "recv from rank 0"),
          asks(3, "recv from rank 2")), (0, 1, 2)),
        # The last one that is asked is in a collective in which who asks is missed.
        ((reduces(0, 0, 1, 2, 3), reduces(3, 0, 1, 2, 3), asks(1, "recv from rank 0"),
          asks(2, "recv from rank 1")), (0, 1)),
        # ... in which it is not: that collective waits for somebody else.
        ((reduces(0, 0, 3), reduces(3, 0, 3), asks(1, "recv from rank 0")), ()),
        # Somebody is in a collective that has nothing to do with it.
        ((asks(0, "recv from rank 1"), asks(1, "recv from rank 0"), reduces(2, 2, 3),
          reduces(3, 2, 3)), ()),
        # Two pairs, each for itself.
        ((asks(0, "recv from rank 1"), asks(1, "recv from rank 0"),
          asks(2, "recv from rank 3"), asks(3, "recv from rank 2")), ()),
        # All are in the circle: nobody to be left out.
        ((asks(0, "recv from rank 1"), asks(1, "recv from rank 0")), ()),
        # Of who is asked nothing is known.
        ((asks(0, "recv from rank 9"), asks(1, "recv from rank 0"), asks(2, "recv from rank 1")), ()),
        # A thread beside the main one says nothing of that one.
        ((asks(0, "recv from rank 1"), asks(1, "recv from rank 0", beside=True),
          asks(2, "recv from rank 0")), ()),
    ],
)  # fmt: skip
def test_the_knot(members: tuple[Member, ...], ranks: tuple[int, ...]) -> None:
    assert tuple(m.who.rank for m in find_message_knot(members)) == ranks
