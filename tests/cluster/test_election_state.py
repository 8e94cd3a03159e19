"""Who leads, step by step: no socket, no clock."""

from __future__ import annotations

from allaboard.cluster.election_state import EMPTY, LATER, Ballot, Step
from allaboard.cluster.transport.leader_lease import LEASE, Seat


def seat(name: str, session: str = "") -> Seat:
    return Seat(address=f"{name}:1", session=session or name, host=name, job="")


def test_the_first_stands_the_others_follow() -> None:
    one, other = Ballot("a"), Ballot("b")
    assert one.seen(0.0, None, linked=False) is Step.STAND
    one.taken(seat("a"))
    assert one.leads() and not one.gone
    assert other.seen(0.0, seat("a"), linked=False) is Step.FOLLOW
    assert other.seen(0.0, seat("a"), linked=True) is Step.WAIT
    assert not other.gone


def test_a_leader_that_still_answers_gets_time_to_take_the_seat_again() -> None:
    one = Ballot("b")
    one.seen(0.0, seat("a"), linked=False)
    steps = [one.seen(0.0, None, linked=True) for _ in range(EMPTY)]
    assert steps == [Step.WAIT] * (EMPTY - 1) + [Step.STAND]
    assert one.seen(0.0, seat("a"), linked=True) is Step.WAIT
    assert one.seen(0.0, None, linked=True) is Step.WAIT


def test_who_led_and_has_gone_is_known_to_the_next() -> None:
    one = Ballot("b")
    one.seen(0.0, seat("a"), linked=False)
    assert one.seen(0.0, None, linked=False) is Step.STAND
    one.taken(seat("b"))
    assert [s.host for s in one.gone] == ["a"]


def test_two_that_went_one_after_the_other_are_both_known() -> None:
    one = Ballot("c")
    one.seen(0.0, seat("a"), linked=False)
    assert one.seen(0.0, seat("b"), linked=False) is Step.FOLLOW
    one.seen(0.0, None, linked=False)
    one.taken(seat("c"))
    assert [s.host for s in one.gone] == ["a", "b"]


def test_a_host_that_came_back_has_not_gone() -> None:
    one = Ballot("c")
    one.seen(0.0, seat("a"), linked=False)
    one.seen(0.0, seat("b"), linked=False)
    assert one.seen(0.0, seat("a", "another agent there"), linked=False) is Step.FOLLOW
    assert [s.host for s in one.gone] == ["b"]


def test_our_own_seat_is_taken_again() -> None:
    assert Ballot("a").seen(0.0, seat("a"), linked=False) is Step.STAND


def test_once_training_has_begun_nobody_takes_over() -> None:
    one = Ballot("b")
    one.seen(0.0, seat("a"), linked=False)
    one.closed = True
    assert one.seen(0.0, None, linked=False) is Step.WAIT


def test_a_leader_without_etcd_goes_on_while_it_is_heard() -> None:
    one = Ballot("a")
    one.taken(seat("a"))
    assert one.trouble(10.0, met=3, here=2) is Step.WAIT
    assert one.trouble(10.0 + LEASE, met=3, here=2) is Step.WAIT
    assert one.trouble(10.0 + LEASE, met=3, here=0) is Step.RESIGN


def test_a_leader_that_has_let_all_through_leads_to_the_end() -> None:
    one = Ballot("a")
    one.taken(seat("a"))
    one.closed = True
    one.trouble(10.0, met=1, here=0)
    assert one.trouble(10.0 + LEASE, met=1, here=0) is Step.WAIT


def test_a_leader_whom_nobody_has_come_to_waits() -> None:
    one = Ballot("a")
    one.taken(seat("a"))
    one.trouble(10.0, met=0, here=0)
    assert one.trouble(100.0, met=0, here=0) is Step.WAIT


def test_trouble_that_passed_counts_from_anew() -> None:
    one = Ballot("a")
    one.taken(seat("a"))
    one.trouble(10.0, met=1, here=0)
    assert one.kept(True) is Step.WAIT
    assert one.trouble(20.0, met=1, here=0) is Step.WAIT
    assert one.kept(False) is Step.STAND


def test_rank_0_is_given_the_time_to_be_the_first() -> None:
    one = Ballot("b", rank=1)
    assert one.seen(10.0, None, linked=False) is Step.WAIT
    assert one.seen(10.0 + LATER, None, linked=False) is Step.STAND
    one.seen(20.0, seat("a"), linked=False)
    assert one.seen(21.0, None, linked=False) is Step.STAND
