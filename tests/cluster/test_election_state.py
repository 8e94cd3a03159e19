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
    assert one.observe_lease(0.0, None, is_linked=False) is ElectionStep.STAND
    one.record_win(seat("a"))
    assert one.leader == seat("a") and not one.former_leaders
    assert other.observe_lease(0.0, seat("a"), is_linked=False) is ElectionStep.FOLLOW
    assert other.observe_lease(0.0, seat("a"), is_linked=True) is ElectionStep.WAIT
    assert not other.former_leaders


def test_a_leader_that_still_answers_gets_time_to_take_the_seat_again() -> None:
    one = ElectionState("b")
    one.observe_lease(0.0, seat("a"), is_linked=False)
    steps = [
        one.observe_lease(0.0, None, is_linked=True) for _ in range(EMPTY_READS_BEFORE_CANDIDACY)
    ]
    assert steps == [ElectionStep.WAIT] * (EMPTY_READS_BEFORE_CANDIDACY - 1) + [ElectionStep.STAND]
    assert one.observe_lease(0.0, seat("a"), is_linked=True) is ElectionStep.WAIT
    assert one.observe_lease(0.0, None, is_linked=True) is ElectionStep.WAIT


def test_who_led_and_has_gone_is_known_to_the_next() -> None:
    one = ElectionState("b")
    one.observe_lease(0.0, seat("a"), is_linked=False)
    assert one.observe_lease(0.0, None, is_linked=False) is ElectionStep.STAND
    one.record_win(seat("b"))
    assert [s.host for s in one.former_leaders] == ["a"]


def test_two_that_went_one_after_the_other_are_both_known() -> None:
    one = ElectionState("c")
    one.observe_lease(0.0, seat("a"), is_linked=False)
    assert one.observe_lease(0.0, seat("b"), is_linked=False) is ElectionStep.FOLLOW
    one.observe_lease(0.0, None, is_linked=False)
    one.record_win(seat("c"))
    assert [s.host for s in one.former_leaders] == ["a", "b"]


def test_a_host_that_came_back_has_not_gone() -> None:
    one = ElectionState("c")
    one.observe_lease(0.0, seat("a"), is_linked=False)
    one.observe_lease(0.0, seat("b"), is_linked=False)
    assert (
        one.observe_lease(0.0, seat("a", "another agent there"), is_linked=False)
        is ElectionStep.FOLLOW
    )
    assert [s.host for s in one.former_leaders] == ["b"]


def test_our_own_seat_is_taken_again() -> None:
    assert ElectionState("a").observe_lease(0.0, seat("a"), is_linked=False) is ElectionStep.STAND


def test_once_training_has_begun_nobody_takes_over() -> None:
    one = ElectionState("b")
    one.observe_lease(0.0, seat("a"), is_linked=False)
    one.is_closed = True
    assert one.observe_lease(0.0, None, is_linked=False) is ElectionStep.WAIT


def test_a_leader_without_etcd_goes_on_while_it_is_heard() -> None:
    one = ElectionState("a")
    one.record_win(seat("a"))
    assert one.record_store_error(10.0, met_count=3, connected_count=2) is ElectionStep.WAIT
    assert (
        one.record_store_error(10.0 + LEASE_S, met_count=3, connected_count=2) is ElectionStep.WAIT
    )
    assert (
        one.record_store_error(10.0 + LEASE_S, met_count=3, connected_count=0)
        is ElectionStep.RESIGN
    )


def test_a_leader_that_has_let_all_through_leads_to_the_end() -> None:
    one = ElectionState("a")
    one.record_win(seat("a"))
    one.is_closed = True
    one.record_store_error(10.0, met_count=1, connected_count=0)
    assert (
        one.record_store_error(10.0 + LEASE_S, met_count=1, connected_count=0) is ElectionStep.WAIT
    )


def test_a_leader_whom_nobody_has_come_to_waits() -> None:
    one = ElectionState("a")
    one.record_win(seat("a"))
    one.record_store_error(10.0, met_count=0, connected_count=0)
    assert one.record_store_error(100.0, met_count=0, connected_count=0) is ElectionStep.WAIT


def test_trouble_that_passed_counts_from_anew() -> None:
    one = ElectionState("a")
    one.record_win(seat("a"))
    one.record_store_error(10.0, met_count=1, connected_count=0)
    assert one.record_renewal(True) is ElectionStep.WAIT
    assert one.record_store_error(20.0, met_count=1, connected_count=0) is ElectionStep.WAIT
    assert one.record_renewal(False) is ElectionStep.STAND


def test_rank_0_is_given_the_time_to_be_the_first() -> None:
    one = ElectionState("b", rank=1)
    assert one.observe_lease(10.0, None, is_linked=False) is ElectionStep.WAIT
    assert (
        one.observe_lease(10.0 + RANK_0_HEAD_START_S, None, is_linked=False) is ElectionStep.STAND
    )
    one.observe_lease(20.0, seat("a"), is_linked=False)
    assert one.observe_lease(21.0, None, is_linked=False) is ElectionStep.STAND
