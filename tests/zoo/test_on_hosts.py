"""The faults that are staged on one host, with a host for each rank: the same rule and rank, on every host.

What a host sees reaches the deciding one over a stream, later than its own, and a host whose deciding one has
gone sees itself alone: who is blamed must not hang on either.
"""

from __future__ import annotations

import pytest

from allaboard.drills.run_drill import all_drills
from bedded import need
from multihost_drills.run_host_drill import stage
from multihost_drills.spread_drill import spread

WITHIN = 60.0
"""Seconds on a busy machine; how soon a fault is found is measured by bench/."""
NAMES = (
    "alone", "asleep", "asleep-before-init", "batch-sizes-differ", "crossed-groups", "exception", "exits-3",
    "gil-held", "gil-held-aside", "input", "jax-stuck-in-python", "loader-exception",
    "loader-worker-killed", "nan-loss", "new-group-on-some", "open-files", "other-dtype", "other-elements",
    "other-order", "other-order-functional", "other-reduce", "other-root", "pair-asleep",
    "polls-for-a-file", "same-batches", "slow-code", "slow-data", "slow-data-everywhere",
    "stuck-in-data-loader", "stuck-in-python", "swapped-calls", "tf-asleep", "tf-exception",
    "tf-stuck-in-python", "two-locks",
)  # fmt: skip
"""Left out are those whose guilty host ends at once and is told nothing more (it left, or died before init),
and those that ports, limits or cgroups of one host are needed for."""


@pytest.mark.long
@pytest.mark.zoo
@pytest.mark.parametrize("name", NAMES)
def test_a_fault_of_one_rank_is_named_on_every_host(name: str) -> None:
    need()
    result = stage(name, spread(name, all_drills()[name], WITHIN))
    assert result.passed, (
        f"found={result.found} after {result.seconds} s, left_behind={result.left_behind} "
        f"right_rank={result.right_rank} exit={result.exit_code} "
        f"others={[(f.rule, f.summary) for f in result.others]}\n{result.output[-8000:]}"
    )
