"""Every host drill on the real framework, a network namespace each host: the right rule on every host
that must be told, the right who, the right exit code, in time, and nothing else."""

from __future__ import annotations

import pytest

from bedded import excuse
from chosen import chosen
from multihost_drills.run_host_drill import all_host_drills, lacks, rehearse

DRILLS = all_host_drills()


@pytest.mark.zoo
@pytest.mark.parametrize("name", chosen(DRILLS))
def test_the_fault_is_named(name: str) -> None:
    if why := lacks(DRILLS[name]):
        pytest.skip(excuse(why))
    result = rehearse(name)
    assert result.passed, (
        f"found={result.found} after {result.seconds} s, left_behind={result.left_behind} "
        f"right_rank={result.right_rank} exit={result.exit_code} "
        f"others={[(f.rule, f.summary) for f in result.others]}\n{result.output[-8000:]}"
    )
