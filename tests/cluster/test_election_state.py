"""Who leads, step by step: no socket, no clock."""

from __future__ import annotations

from allaboard.cluster.election_state import (
    EMPTY_READS_BEFORE_CANDIDACY,
    RANK_0_HEAD_START_S,
    ElectionState,
    ElectionStep,
)
from allaboard.cluster.transport.leader_lease import LEASE_S, LeaderRecord


def seat(name: str, session: str = "") -> LeaderRecord:
    return LeaderRecord(address=f"{name}:1", session=session or name, host=name, job="")


def test_the_first_stands_the_others_follow() -> None:
    one, other = ElectionState("a"), ElectionState("b")
    assert one.seen(0.0, None, linked=False) is ElectionStep.STAND
    one.taken(seat("a"))
    assert one.leads() and not one.gone
    assert other.seen(0.0, seat("a"), linked=False) is ElectionStep.FOLLOW
    assert other.seen(0.0, seat("a"), linked=True) is ElectionStep.WAIT
    assert not other.gone


def test_a_leader_that_still_answers_gets_time_to_take_the_seat_again() -> None:
    one = ElectionState("b")
    one.seen(0.0, seat("a"), linked=False)
    steps = [one.seen(0.0, None, linked=True) for _ in range(EMPTY_READS_BEFORE_CANDIDACY)]
    assert steps == [ElectionStep.WAIT] * (EMPTY_READS_BEFORE_CANDIDACY - 1) + [ElectionStep.STAND]
    assert one.seen(0.0, seat("a"), linked=True) is ElectionStep.WAIT
    assert one.seen(0.0, None, linked=True) is ElectionStep.WAIT


def test_who_led_and_has_gone_is_known_to_the_next() -> None:
    one = ElectionState("b")
    one.seen(0.0, seat("a"), linked=False)
    assert one.seen(0.0, None, linked=False) is ElectionStep.STAND
    one.taken(seat("b"))
    assert [s.host for s in one.gone] == ["a"]


def test_two_that_went_one_after_the_other_are_both_known() -> None:
    one = ElectionState("c")
    one.seen(0.0, seat("a"), linked=False)
    assert one.seen(0.0, seat("b"), linked=False) is ElectionStep.FOLLOW
    one.seen(0.0, None, linked=False)
    one.taken(seat("c"))
    assert [s.host for s in one.gone] == ["a", "b"]


def test_a_host_that_came_back_has_not_gone() -> None:
    one = ElectionState("c")
    one.seen(0.0, seat("a"), linked=False)
    one.seen(0.0, seat("b"), linked=False)
    assert one.seen(0.0, seat("a", "another agent there"), linked=False) is ElectionStep.FOLLOW
    assert [s.host for s in one.gone] == ["b"]


def test_our_own_seat_is_taken_again() -> None:
    assert ElectionState("a").seen(0.0, seat("a"), linked=False) is ElectionStep.STAND


def test_once_training_has_begun_nobody_takes_over() -> None:
    one = ElectionState("b")
    one.seen(0.0, seat("a"), linked=False)
    one.closed = True
    assert one.seen(0.0, None, linked=False) is ElectionStep.WAIT


def test_a_leader_without_etcd_goes_on_while_it_is_heard() -> None:
    one = ElectionState("a")
    one.taken(seat("a"))
    assert one.trouble(10.0, met=3, here=2) is ElectionStep.WAIT
    assert one.trouble(10.0 + LEASE_S, met=3, here=2) is ElectionStep.WAIT
    assert one.trouble(10.0 + LEASE_S, met=3, here=0) is ElectionStep.RESIGN


def test_a_leader_that_has_let_all_through_leads_to_the_end() -> None:
    one = ElectionState("a")
    one.taken(seat("a"))
    one.closed = True
    one.trouble(10.0, met=1, here=0)
    assert one.trouble(10.0 + LEASE_S, met=1, here=0) is ElectionStep.WAIT


def test_a_leader_whom_nobody_has_come_to_waits() -> None:
    one = ElectionState("a")
    one.taken(seat("a"))
    one.trouble(10.0, met=0, here=0)
    assert one.trouble(100.0, met=0, here=0) is ElectionStep.WAIT


def test_trouble_that_passed_counts_from_anew() -> None:
    one = ElectionState("a")
    one.taken(seat("a"))
    one.trouble(10.0, met=1, here=0)
    assert one.kept(True) is ElectionStep.WAIT
    assert one.trouble(20.0, met=1, here=0) is ElectionStep.WAIT
    assert one.kept(False) is ElectionStep.STAND


def test_rank_0_is_given_the_time_to_be_the_first() -> None:
    one = ElectionState("b", rank=1)
    assert one.seen(10.0, None, linked=False) is ElectionStep.WAIT
    assert one.seen(10.0 + RANK_0_HEAD_START_S, None, linked=False) is ElectionStep.STAND
    one.seen(20.0, seat("a"), linked=False)
    assert one.seen(21.0, None, linked=False) is ElectionStep.STAND
