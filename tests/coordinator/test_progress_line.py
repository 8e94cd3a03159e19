"""What the line at the bottom of the terminal says while a job makes no progress."""

from __future__ import annotations

from allaboard.coordinator.progress_line import progress_line
from allaboard.facts import Phase
from allaboard.facts.samples import ended_member, sample_member, stalled_job, waiting_member


def test_stacks_are_collected_until_each_member_has_one() -> None:
    unsampled = stalled_job(waiting_member(0), waiting_member(1, stack=None))
    assert progress_line(unsampled).endswith("; collecting stack traces")
    assert progress_line(stalled_job(waiting_member(0), waiting_member(1))) == (
        "no progress for 10 s"
    )


def test_a_job_whose_workers_all_exit_is_said_to_exit() -> None:
    leaving = sample_member(0, phase=Phase.LEAVING)
    assert progress_line(stalled_job(leaving, ended_member(1, code=0))) == (
        "all workers are exiting, for 10 s"
    )
    one_stands = stalled_job(leaving, waiting_member(1, stack=None))
    assert progress_line(one_stands).startswith("no progress for 10 s")
