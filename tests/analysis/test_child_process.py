"""A wait for a child process: what it is called, how much it matters, and that it ends no job."""

from __future__ import annotations

import msgspec
import pytest

from allaboard.analysis.stalls.child_process import describe_child
from allaboard.facts import Certainty, Frame, JobView, Severity, Stage
from allaboard.facts.samples import USER, sample_member, sample_stack, stalled_job, waiting_member
from allaboard.policy.end.end_policy import EndPolicy
from allaboard.policy.end.verdict import end_verdict
from allaboard.rules.hang002_stuck_in_code import RULE as STUCK
from allaboard.rules.hang018_waits_for_a_child import RULE as WAITS

WAIT = Frame("/usr/lib/python3.11/subprocess.py", 1264, "wait")


def view(since: float, *children: tuple[int, str], **more: float) -> JobView:
    """One waits for these, and the others for it, for so many seconds."""
    awaits = msgspec.structs.replace(sample_stack(WAIT, USER), children=children)
    one = sample_member(1, stack=awaits, **more)
    return stalled_job(waiting_member(0), one, waiting_member(2), progress_at=100.0 - since)


@pytest.mark.parametrize(
    ("children", "said"),
    [
        ((), "a child process"),
        (((7, "/usr/bin/sleep 30"),), "its child process 7 (sleep 30)"),
        (((7, "sh -c x"), (8, "tee log")), "its child process 7 (sh -c x) and 1 more"),
        (((7, "aws " + "s3 " * 20),), "its child process 7 (aws " + "s3 " * 11 + "s3…)"),
        (((7, ""),), "its child process 7 (?)"),
    ],
)
def test_a_child_is_called_by_its_command(children: tuple[tuple[int, str], ...], said: str) -> None:
    assert describe_child(view(10.0, *children).members[1]) == said


@pytest.mark.parametrize(
    ("does", "severity"),
    [({}, "warning"), ({"io": 4e5}, "info"), ({"traffic": 4e5}, "info"), ({"cpu": 0.9}, "info")],
)
def test_it_matters_less_while_the_child_is_at_work(does: dict[str, float], severity: str) -> None:
    (claim,) = WAITS.check(view(30.0, (7, "rsync a b"), **does))
    assert (claim.severity, claim.certainty) == (severity, Certainty.CERTAIN)
    assert not list(STUCK.check(view(30.0, (7, "rsync a b"), **does)))


def test_no_job_is_ended_for_it_before_its_time() -> None:
    policy = EndPolicy(stop_on_hang=True, hang_after=90.0)

    def ended(since: float) -> str:
        now = view(since, (7, "sleep 3600"))
        claims = [(Stage.RUNTIME, c) for r in (WAITS, STUCK) for c in r.check(now)]
        found = end_verdict(now, [], claims, policy)
        return "" if found is None else found.reason

    assert [ended(10.0), ended(89.0)] == ["", ""]
    assert ended(90.0) == "job stopped because of a hang: no progress for 90 s (--hang-after 90)"
    (claim,) = STUCK.check(view(60.0, (7, "sleep 3600")))
    assert (claim.severity, claim.certainty) == (Severity.ERROR, Certainty.LIKELY)
