"""What is said of another job's roll call: told from this side, and nobody is sent to end it first."""

from __future__ import annotations

from allaboard.analysis.roll_call.rendezvous_attempt import example_attempt
from allaboard.facts import Answer, Holder
from allaboard.facts.samples import arrived_member, gathering_job
from allaboard.rules import join009_other_job, net005_port_taken


def test_both_jobs_are_called_as_they_are_seen_from_here() -> None:
    view = example_attempt(Answer.OTHER, 3.0, "belongs to job 41, this is 42", kind="other-job")
    (claim,) = join009_other_job.check(view)
    assert claim.evidence[0].observed == "this job is 41, the other one is 42"


def test_a_roll_call_that_is_alive_is_not_to_be_ended_first() -> None:
    holder = Holder(
        address="a:29500", pid=77, command="allaboard run", job="SLURM_JOB_ID=41",
        answer=Answer.ABOARD, looked_at=95.0,
    )  # fmt: skip
    view = gathering_job(arrived_member(0), joined=True, leads=True, launched=1, holder=holder)
    (claim,) = net005_port_taken.check(view)
    assert claim.fix.startswith(
        "use another port, the same on all hosts: another job (SLURM_JOB_ID=41)"
    )
