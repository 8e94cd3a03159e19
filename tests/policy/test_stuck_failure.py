"""A job that stands still because a member failed and does not exit has failed: it does not hang. Pure."""

from __future__ import annotations

import msgspec

from allaboard.facts import Frame, JobView, Outcome, Raised
from allaboard.facts.samples import sample_member, sample_stack, stalled_job, waiting_member
from allaboard.policy.end.end_policy import EndPolicy
from allaboard.policy.end.verdict import end_verdict

POLICY = EndPolicy(stop_on_hang=True, hang_after=8.0)
SHUTDOWN = Frame("/v/site-packages/jax/_src/distributed.py", 244, "shutdown")
"""Where JAX waits for all processes when one of them exits; recorded with JAX 0.11 on a GPU."""
RAISED = Raised(
    type="ValueError", message="bad batch", raised_at=84.0, where=Frame("train.py", 14, "<module>")
)


def _stands_in_its_exit(**changes: object) -> JobView:
    failed = sample_member(1, stack=sample_stack(SHUTDOWN), raised=RAISED, cpu=0.3)
    failed = msgspec.structs.replace(failed, **changes)
    return stalled_job(waiting_member(0), failed, hang_limit=POLICY.hang_limit)


def test_the_failure_is_the_outcome() -> None:
    verdict = end_verdict(_stands_in_its_exit(), [], [], POLICY)
    assert verdict is not None
    assert verdict.outcome is Outcome.FAILED
    assert verdict.reason.startswith("worker 1 failed and has not exited for 16 s (--hang-after 8)")


def test_without_a_failure_it_is_a_hang() -> None:
    verdict = end_verdict(_stands_in_its_exit(raised=None), [], [], POLICY)
    assert verdict is not None
    assert verdict.outcome is Outcome.HANG
