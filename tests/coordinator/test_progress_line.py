"""What the line at the bottom of the terminal says while a job makes no progress."""

from __future__ import annotations

from allaboard.coordinator.progress_line import progress_line
from allaboard.facts.samples import stalled_job, waiting_member


def test_stacks_are_collected_until_each_member_has_one() -> None:
    unsampled = stalled_job(waiting_member(0), waiting_member(1, stack=None))
    assert progress_line(unsampled).endswith("; collecting stack traces")
    assert progress_line(stalled_job(waiting_member(0), waiting_member(1))) == (
        "no progress for 10 s"
    )
