"""What is advised where a rank had fewer batches: in the words of its framework."""

from __future__ import annotations

import pytest

from allaboard.facts.samples import ended, stalled, waiting
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
    gone = ended(1, at=90.5, code=0, member={"framework": framework})
    (claim,) = check(stalled(waiting(0), gone, waiting(2)))
    assert says in claim.fix and never not in claim.fix.partition("; ")[0]
