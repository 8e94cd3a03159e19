"""Every drill on the real framework: the right rule, the right rank, the right exit code, nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from allaboard.catalogue import catalogue
from allaboard.rehearse import all_drills, lacks, rehearse

DRILLS = all_drills()


@pytest.mark.zoo
@pytest.mark.parametrize("name", DRILLS)
def test_the_fault_is_named(name: str) -> None:
    drill = DRILLS[name]
    if why := lacks(drill):
        pytest.skip(f"not on this machine: {why}")
    before = boxes()
    result = rehearse(name)
    assert result.passed, (
        f"found={result.found} right_rank={result.right_rank} exit={result.exit_code} "
        f"others={[(f.rule, f.summary) for f in result.others]}\n{result.output[-6000:]}"
    )
    assert boxes() <= before, "black boxes were left behind"


def boxes() -> set[str]:
    return {p.name for p in Path("/dev/shm").glob(f"allaboard-{os.getuid()}-*")}


def test_rules_and_drills_name_each_other() -> None:
    staged = {(d, e.code) for e in catalogue().entries for d in e.rule.drill}
    expected = {(name, drill.expects) for name, drill in DRILLS.items()}
    assert staged == expected
