"""What is advised where a rank had fewer batches: in the words of its framework."""

from __future__ import annotations

import pytest

from allaboard.facts.samples import ended_member, stalled_job, waiting_member
from allaboard.rules.exit004_left_early import check


@pytest.mark.parametrize(
    ("framework", "says", "never"),
    [
        ("torch", "DistributedSampler", "Dataset.repeat"),
        ("tensorflow", "Dataset.repeat", "DistributedSampler"),
        ("jax", "batches; if one", "("),
    ],
)
def test_the_framework_s_own_means(framework: str, says: str, never: str) -> None:
    gone = ended_member(1, ended_at=90.5, code=0, member={"framework": framework})
    (claim,) = check(stalled_job(waiting_member(0), gone, waiting_member(2)))
    assert says in claim.fix and never not in claim.fix.partition("; ")[0]
