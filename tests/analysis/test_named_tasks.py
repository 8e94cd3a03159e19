"""The one member that a message names by its task."""

from __future__ import annotations

import pytest

from allaboard.analysis.log_ends.named_tasks import named_task
from allaboard.facts import Who

PS = Who(job="ps", index=1)


@pytest.mark.parametrize(
    ("message", "named"),
    [
        ("From /job:ps/replica:0/task:1: the stream is closed", (PS,)),
        ("still waiting for an answer of /job:ps/task:1", (PS,)),
        ("names of the late tasks:\n/job:jax_worker/replica:0/task:5", (Who(index=5, rank=5),)),
        ("/job:ps/replica:0/task:1/device:CPU:0 has no such kernel", ()),
        ("first was /job:ps/replica:0/task:1, late is /job:ps/replica:0/task:0", ()),
        ("/job:localhost/replica:0/task:0 is not enough", ()),
        ("task 7 is late", ()),
    ],
)
def test_a_task_is_named_if_it_is_the_only_one(message: str, named: tuple[Who, ...]) -> None:
    assert named_task(message) == named
