"""When a drop-in's roll call and init are given up, and when a rehearsal is: pure."""

from __future__ import annotations

import pytest

from allaboard.analysis.roll_call.roll_call import find_roll_calls
from allaboard.analysis.stalls.hang_limit import DIAGNOSIS_TIME_S
from allaboard.facts import Certainty, Claim, Frame, Outcome, Silence, Spent, Stage, Who
from allaboard.facts.member import Op, Phase, Raised
from allaboard.facts.samples import (
    NOW,
    USER,
    arrived_member,
    ended_member,
    gathering_job,
    sample_job,
    sample_member,
    sample_stack,
    stalled_job,
    waiting_member,
)
from allaboard.policy.end.end_policy import EndPolicy
from allaboard.policy.end.failure_end import STUCK_IN_EXIT_S
from allaboard.policy.end.startup_end import REHEARSAL_FAULT_S
from allaboard.policy.end.verdict import end_verdict
from allaboard.rules.engine.catalogue import load_catalogue

HANG001 = next(e.rule for e in load_catalogue().entries if e.code == "HANG001")
ABSENT = Claim(summary="rank 2 has not joined", awaits=True)
TWICE = Claim(summary="two claim to be rank 1")


def decided(policy: EndPolicy, claim: Claim, arrived: float) -> Outcome | None:
    view = gathering_job(
        arrived_member(0, phase_since=arrived),
        arrived_member(1, phase_since=arrived),
        launched_at=0.0,
    )
    found = end_verdict(view, find_roll_calls(view), [(Stage.STARTUP, claim)], policy)
    return found.outcome if found is not None else None


def test_who_may_still_come_is_waited_for_as_long_as_was_asked() -> None:
    policy = EndPolicy(patience=80.0)
    assert decided(policy, ABSENT, NOW - 60.0) is None
    assert decided(policy, ABSENT, NOW - 81.0) is Outcome.ROLL_CALL_FAILED
    assert decided(EndPolicy(), ABSENT, NOW - 60.0) is Outcome.ROLL_CALL_FAILED


def test_what_no_waiting_mends_ends_it_at_once() -> None:
    assert decided(EndPolicy(patience=80.0), TWICE, NOW - 1.0) is Outcome.ROLL_CALL_FAILED


def test_an_init_that_does_not_come_back() -> None:
    def after(seconds: float, within: float | None) -> Outcome | None:
        members = [
            sample_member(r, phase=Phase.JOINING, phase_since=NOW - seconds) for r in range(3)
        ]
        view = sample_job(*members)
        found = end_verdict(view, find_roll_calls(view), [], EndPolicy(init_within=within))
        return found.outcome if found is not None else None

    assert after(9.0, 10.0) is None
    assert after(11.0, 10.0) is Outcome.ROLL_CALL_FAILED
    assert after(1000.0, None) is None


def test_a_link_that_may_not_be_needed_ends_what_stands_still_after_the_bound() -> None:
    likely = Claim(summary="a cannot connect to b", certainty=Certainty.LIKELY)

    def after(
        seconds: float, policy: EndPolicy, *claims: Claim, **changes: object
    ) -> Outcome | None:
        at = NOW - seconds
        first = {"phase": Phase.JOINING, "phase_since": at, "step": 0, "ops": 0} | changes
        view = sample_job(sample_member(0, **first), sample_member(1, step=0), rolled_at=at)
        staged = [(Stage.NETWORK, claim) for claim in claims]
        found = end_verdict(view, find_roll_calls(view), staged, policy)
        return found.outcome if found is not None else None

    policy = EndPolicy(start_bound=10.0)
    assert after(9.0, policy, likely) is None
    assert after(11.0, policy, likely) is Outcome.ROLL_CALL_FAILED
    assert after(11.0, EndPolicy(), likely) is None
    assert after(11.0, policy) is None  # a start that takes long, and nothing is known to be wrong
    assert after(11.0, policy, likely, cpu=0.9) is None
    assert after(11.0, policy, likely, phase=Phase.TRAINING, step=1) is None
    in_its_own_code = {"phase": Phase.JOINED}
    assert after(11.0, policy, likely, **in_its_own_code) is None
    hears_nothing = in_its_own_code | {"unanswered": (Silence("connect", "10.0.0.2:38211"),)}
    assert after(11.0, policy, likely, **hears_nothing) is Outcome.ROLL_CALL_FAILED
    reduces = {"phase": Phase.JOINED, "op": Op("tf.function train_step", 1, NOW - 8.0)}
    assert after(11.0, policy, likely, **reduces) is Outcome.ROLL_CALL_FAILED


def test_a_rehearsal_ends_once_others_had_time_to_see_the_same() -> None:
    def after(seconds: float, policy: EndPolicy) -> Outcome | None:
        view = sample_job(
            *(sample_member(r, phase=Phase.JOINING, phase_since=NOW - 20) for r in range(3))
        )
        claim = Claim(summary="no packet comes back", since=NOW - seconds)
        found = end_verdict(view, find_roll_calls(view), [(Stage.NETWORK, claim)], policy)
        return found.outcome if found is not None else None

    assert after(REHEARSAL_FAULT_S - 1, EndPolicy(stop_on_error=True)) is None
    assert after(REHEARSAL_FAULT_S + 1, EndPolicy(stop_on_error=True)) is Outcome.HANG
    assert after(REHEARSAL_FAULT_S + 1, EndPolicy()) is None


def test_a_rehearsal_that_stands_still_ends_by_its_own_bound() -> None:
    view = sample_job(
        *(sample_member(r, phase=Phase.TRAINING) for r in range(2)),
        stall_after=3.0,
        progress_at=80.0,
    )
    rehearsal = EndPolicy(stop_on_hang=True, stop_on_error=True, hang_after=10.0)
    found = end_verdict(view, find_roll_calls(view), [], rehearsal)
    assert found is not None and found.outcome is Outcome.HANG
    assert "--bound" in found.reason and "--hang-after" not in found.reason


def test_a_rehearsal_does_not_wait_in_init_for_longer_than_its_bound() -> None:
    def after(seconds: float, **changes: object) -> Outcome | None:
        at = NOW - seconds
        told = {"phase": Phase.JOINING, "phase_since": at, "step": 0, "ops": 0} | changes
        members = [sample_member(r, **told) for r in range(2)]
        view = sample_job(*members, stall_after=30.0, progress_at=at, median_step=None)
        rehearsal = EndPolicy(stop_on_hang=True, stop_on_error=True, hang_after=10.0)
        found = end_verdict(view, find_roll_calls(view), [], rehearsal)
        return found.outcome if found is not None else None

    assert after(9.0) is None
    assert after(11.0) is Outcome.HANG
    assert after(11.0, cpu=0.9) is None, "it works"


def test_who_started_the_ranks_itself_decides_what_becomes_of_them() -> None:
    above = sample_member(9, worker=0, launcher=True, declared=None)
    fell = ended_member(1, ended_at=80.0, code=1, member={"worker": 0})
    view = sample_job(above, sample_member(0, worker=0), fell, launched=1)
    assert end_verdict(view, (), (), EndPolicy()) is None
    alone = sample_job(sample_member(0), ended_member(1, ended_at=80.0, code=1), launched=2)
    assert end_verdict(alone, (), (), EndPolicy()) is not None


def test_who_raised_and_is_held_in_its_own_end_has_failed() -> None:
    """JAX's shutdown waits for all, for five minutes; a log that is being uploaded has its time."""

    def after(seconds: float, **changes: object) -> bool:
        raised = Raised(type="ValueError", message="x", raised_at=NOW - seconds)
        held_up = sample_member(1, phase=Phase.LEAVING, raised=raised, **changes)
        return end_verdict(sample_job(waiting_member(0), held_up), (), (), EndPolicy()) is not None

    assert not after(STUCK_IN_EXIT_S - 1.0)
    assert after(STUCK_IN_EXIT_S + 1.0)
    assert not after(STUCK_IN_EXIT_S + 1.0, traffic=1e6)
    assert not after(STUCK_IN_EXIT_S + 1.0, cpu=0.5)


def test_a_roll_call_that_waits_is_no_hang_until_its_own_time_is_over() -> None:
    def after(seconds: float, policy: EndPolicy) -> Outcome | None:
        at = NOW - seconds
        first = arrived_member(0, phase_since=at)
        view = gathering_job(
            first, launched_at=at, progress_at=at, timeout=60.0, joined=True, leads=True
        )
        found = end_verdict(view, find_roll_calls(view), [], policy)
        return found.outcome if found is not None else None

    rehearsal = EndPolicy(stop_on_hang=True, stop_on_error=True, hang_after=30.0)
    assert after(45.0, rehearsal) is None
    assert after(45.0, EndPolicy(stop_on_hang=True, hang_after=30.0)) is None
    assert after(61.0, rehearsal) is Outcome.HANG


def test_an_import_from_a_slow_disk_is_no_hang_while_the_roll_call_may_wait_for_it() -> None:
    def after(seconds: float) -> Outcome | None:
        at = NOW - seconds
        slow = {"phase": Phase.IMPORTING, "step": 0, "ops": 0, "started_at": at, "moved_at": at}
        members = (sample_member(r, declared=None, **slow) for r in range(2))
        view = sample_job(*members, launched_at=at, progress_at=at, rolled_at=None, timeout=60.0)
        found = end_verdict(
            view, find_roll_calls(view), [], EndPolicy(stop_on_hang=True, hang_after=14.0)
        )
        return found.outcome if found is not None else None

    assert after(35.0) is None
    assert after(61.0) is Outcome.HANG


def test_who_is_awaited_is_looked_for_before_a_likely_hang_ends_the_job() -> None:
    """No steps are seen of it, so that it counts as standing still after ten seconds only."""

    def after(seconds: float, hang_after: float) -> Outcome | None:
        ranks = [sample_member(r, moved_at=NOW - seconds, step=0) for r in range(2)]
        view = sample_job(*ranks, progress_at=NOW - seconds, stall_after=10.0)
        policy = EndPolicy(stop_on_hang=True, hang_after=hang_after)
        found = end_verdict(view, find_roll_calls(view), [], policy)
        return found.outcome if found is not None else None

    assert after(10.5, 10.0) is None
    assert after(10.0 + DIAGNOSIS_TIME_S, 10.0) is Outcome.HANG
    assert after(19.0, 20.0) is None
    assert after(20.0, 20.0) is Outcome.HANG


def test_an_evaluation_that_gets_on_is_no_hang_however_long_it_takes() -> None:
    policy = EndPolicy(stop_on_hang=True, hang_after=20.0)

    def after(
        seconds: float, spent: str = "evaluation", moving: bool = True, cpu: float = 1.0
    ) -> object:
        seen = sample_stack(USER, moving=moving)
        view = stalled_job(
            sample_member(0, stack=seen, spent=Spent(now=spent), cpu=cpu),
            waiting_member(1),
            progress_at=NOW - seconds,
        )
        found = end_verdict(view, find_roll_calls(view), [], policy)
        return found.outcome if found is not None else None

    assert after(90.0) is None
    assert after(90.0, spent="") is Outcome.HANG
    assert after(90.0, moving=False) is Outcome.HANG  # a loop that never ends
    assert after(90.0, cpu=0.0) is Outcome.HANG
    assert after(90.0, spent="checkpoint") is None
    assert after(90.0, cpu=0.06) is None  # the host is full


def test_what_tensorflow_runs_at_once_in_an_evaluation_is_no_wait_for_peers() -> None:
    """As its stacks alone tell, where the host is full."""
    at_once = Frame("/v/site-packages/tensorflow/python/eager/execute.py", 53, "quick_execute")
    own = Frame("/home/u/train.py", 17, "evaluate", "s += float(loss(host(x)))")
    one = sample_member(0, stack=sample_stack(at_once, own, moving=True), cpu=0.1)
    view = stalled_job(one, waiting_member(1), progress_at=NOW - 90.0)
    policy = EndPolicy(stop_on_hang=True, hang_after=20.0)
    assert end_verdict(view, find_roll_calls(view), [], policy) is None


@pytest.mark.parametrize("policy", [EndPolicy(restarts=True), EndPolicy(stop_on_hang=True)])
def test_an_evaluator_or_a_child_that_is_stopped_ends_no_job(policy: EndPolicy) -> None:
    """The training may stand for another reason; a rank that is stopped is one."""
    at = sample_stack(USER)
    since = NOW - 50.0

    def ends(**stopped: object) -> bool:
        one = sample_member(2, os_state="T", os_state_since=since, **stopped)
        view = stalled_job(sample_member(0, stack=at), sample_member(1, stack=at), one)
        claims = [(Stage.RUNTIME, claim) for claim in HANG001.check(view)]
        assert claims
        found = end_verdict(view, (), claims, policy)
        return found is not None and "stopped" in found.reason

    assert ends()
    assert not ends(who=Who(job="evaluator", index=0, rank=-1, host="a", pid=102))
    assert not ends(candidate=True)
    assert not ends(launcher=True)
