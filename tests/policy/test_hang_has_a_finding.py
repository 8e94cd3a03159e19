"""A job that is ended for a hang has a finding that names who and where: pure."""

from __future__ import annotations

import pytest

from allaboard.facts import Exit, Frame, Member, Op
from allaboard.facts.samples import (
    USER,
    ps_member,
    sample_member,
    sample_stack,
    stalled_job,
    waiting_member,
)
from allaboard.policy.end.end_policy import EndPolicy
from allaboard.policy.end.verdict import end_verdict
from allaboard.rules.engine.catalogue import load_job_rules
from allaboard.rules.engine.evaluate import run_rules
from allaboard.rules.engine.relations import without_explained_last_resort

POLICY = EndPolicy(stop_on_hang=True, hang_after=8.0)
ANSWER = Frame("/home/u/train.py", 33, "ask", "return connection.recv(4096)")
SPIN = Frame("/home/u/train.py", 12, "wait_for_file", "while not exists(path):")
LIBRARY = Frame("/v/lib/python3.11/site-packages/vendor/api.py", 7, "call")


@pytest.mark.parametrize(
    "members",
    [
        (waiting_member(0), sample_member(1, stack=sample_stack(ANSWER, USER))),
        (waiting_member(0), sample_member(1, stack=sample_stack(LIBRARY, USER), cpu=1.0)),
        (waiting_member(0), sample_member(1, stack=sample_stack(USER, samples=1))),
        (waiting_member(0, stack=None), sample_member(1)),
        (sample_member(0), sample_member(1)),
        (waiting_member(0), waiting_member(1)),
        (sample_member(0, stack=sample_stack(SPIN), cpu=1.0),),
        (sample_member(0, op=Op("tf.function step", 3, 90.0), cpu=1.0),),
        (
            ps_member("worker", 0, exit=Exit(ended_at=60.0, code=0)),
            ps_member("worker", 1, stack=sample_stack(SPIN), cpu=1.0),
            ps_member("ps", 0),
        ),
        (ps_member("ps", 0),),
    ],
)
def test_who_and_where_is_a_finding(members: tuple[Member, ...]) -> None:
    view = stalled_job(*members, hang_limit=POLICY.hang_limit)
    claims = without_explained_last_resort(list(run_rules(view, load_job_rules().entries)))
    assert end_verdict(view, [], [(e.stage, c) for e, c in claims], POLICY) is not None
    about_hang = [c for e, c in claims if e.code.startswith(("HANG", "PS", "DATA"))]
    assert about_hang
    assert about_hang[0].who
    assert about_hang[0].fix


def test_the_last_resort_gives_way_to_any_other_cause() -> None:
    stopped = sample_member(1, os_state="T", os_state_since=80.0)
    view = stalled_job(waiting_member(0), stopped, hang_limit=8.0)
    claims = without_explained_last_resort(list(run_rules(view, load_job_rules().entries)))
    assert "HANG001" in {e.code for e, _ in claims}
    assert "HANG027" not in {e.code for e, _ in claims}


@pytest.mark.parametrize(
    "policy",
    [
        EndPolicy(hang_after=8.0),
        EndPolicy(stop_on_hang=True, hang_after=8.0, only_observes=True),
        EndPolicy(stop_on_hang=True, hang_after=8.0, stop_on_error=True),
    ],
)
def test_a_job_that_is_not_ended_has_no_limit(policy: EndPolicy) -> None:
    assert policy.hang_limit is None
