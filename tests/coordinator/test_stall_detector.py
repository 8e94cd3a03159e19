"""When stacks are looked at."""

from __future__ import annotations

import msgspec
import pytest

from allaboard.analysis.parameter_servers.task_roles import AWAIT_CHIEF_OP
from allaboard.coordinator.stall_detector import FREQUENT_SAMPLES, StallDetector
from allaboard.facts import GroupState, JobView, Op, Phase
from allaboard.facts.samples import (
    USER,
    ended_member,
    member_with_calls,
    ps_member,
    sample_job,
    sample_member,
    sample_signature,
    sample_stack,
)


def pairs(quiet: float, now: float = 100.0) -> JobView:
    """Ranks 0 and 1 have not moved for so long (s), 0 waits for 1; 2 and 3 train on."""
    stood = now - quiet
    ranks = (0, 1)
    waiting = sample_member(0, groups=(GroupState("1", 1, 8, 90.0, 2, ranks),), moved_at=stood,
                     op=Op("all_reduce", 1, stood, "1", 8))  # fmt: skip
    away = sample_member(1, groups=(GroupState("1", 1, 7, 90.0, 2, ranks),), moved_at=stood)
    moving = (sample_member(r, moved_at=now) for r in (2, 3))
    return sample_job(waiting, away, *moving, now=now, progress_at=now)


def test_nobody_is_looked_at_while_all_move() -> None:
    lookout = StallDetector()
    assert lookout.pids_to_sample(pairs(1.0)) == ()
    assert not lookout.needs_samples_soon


def test_a_part_that_stands_is_looked_at_before_it_counts_as_standing() -> None:
    lookout, view = StallDetector(), pairs(1.6)
    assert lookout.pids_to_sample(view) == (100, 101)
    assert lookout.needs_samples_soon
    assert not view.stalled


def test_a_part_is_looked_at_often_and_then_seldom() -> None:
    lookout = StallDetector()
    for look in range(FREQUENT_SAMPLES):
        assert lookout.pids_to_sample(pairs(2.0 + look / 4, now=100.0 + look / 4))
    assert not lookout.needs_samples_soon
    assert lookout.pids_to_sample(pairs(8.0, now=100.0 + FREQUENT_SAMPLES / 4)) == ()


@pytest.mark.parametrize("quiet", [1.0, 2.0])
def test_a_silent_job_is_looked_at_as_a_whole(quiet: float) -> None:
    view = msgspec.structs.replace(pairs(2.0), progress_at=100.0 - quiet)
    looked = StallDetector().pids_to_sample(view)
    assert looked == ((100, 101, 102, 103) if quiet > 1.5 else (100, 101))


def test_who_had_not_come_when_a_timeout_ran_out_is_looked_at_until_it_was_seen() -> None:
    gave_up = "Timed out waiting 2000ms for recv operation to complete"
    there, behind = (GroupState("", 1, n, 98.0, 2, (0, 1)) for n in (8, 7))
    lost = ended_member(
        0, ended_at=99.9, raised=("RuntimeError", gave_up), member={"groups": (there,)}
    )
    view = sample_job(
        lost, sample_member(1, groups=(behind,), moved_at=99.0), now=100.0, progress_at=99.9
    )
    assert StallDetector().pids_to_sample(view) == (101,)
    seen = msgspec.structs.replace(view.members[1], stack=sample_stack(USER))
    assert StallDetector().pids_to_sample(msgspec.structs.replace(view, members=(lost, seen))) == ()


def servers(cpu: float = 0.0, moved_at: float = 90.0, op: Op | None = None) -> JobView:
    """Worker 0 of a job with parameter servers waits for the chief, which has not begun."""
    chief = ps_member(
        "chief", 0, number=3, phase=Phase.IMPORTED, step=0, cpu=cpu, moved_at=moved_at, op=op
    )
    wait = Op(AWAIT_CHIEF_OP, 1, 97.0)
    return sample_job(
        chief,
        ps_member("worker", 0, op=wait, step=0),
        ps_member("ps", 0),
        progress_at=97.0,
        stall_after=10.0,
    )


def test_who_is_awaited_at_the_start_of_a_session_is_looked_at_if_it_stands() -> None:
    awaited = servers().members[0].event_key
    assert StallDetector().pids_to_sample(servers()) == (awaited,)
    assert StallDetector().pids_to_sample(servers(cpu=0.9)) == (), "it computes, and is on its way"
    assert StallDetector().pids_to_sample(servers(moved_at=99.0)) == (), (
        "it has just done something new"
    )
    assert (
        StallDetector().pids_to_sample(servers(op=Op("SessionManager.prepare_session", 1, 90.0)))
        == ()
    )


def test_who_has_just_come_to_different_calls_is_looked_at_at_once() -> None:
    members = [
        member_with_calls(0, sample_signature(), size=2),
        member_with_calls(1, sample_signature("barrier", line=51, dtype=""), size=2),
    ]
    view = sample_job(*members, now=90.3, progress_at=90.2)
    assert StallDetector().pids_to_sample(view) == tuple(m.event_key for m in members)
    alike = sample_job(members[0], member_with_calls(1, sample_signature(), size=2), now=90.3,
                       progress_at=90.2)  # fmt: skip
    assert StallDetector().pids_to_sample(alike) == ()
