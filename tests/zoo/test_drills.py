"""Every drill on the real framework: the right rule, the right rank, the right exit code, nothing else."""

from __future__ import annotations

import pytest

from allaboard.contracts import USUAL
from allaboard.drills.run_drill import all_drills, lacks, may_be_warm, rehearse
from allaboard.facts import Stage
from allaboard.rules.engine.catalogue import load_catalogue
from chosen import chosen
from multihost_drills.run_host_drill import all_host_drills

DRILLS = all_drills()
SHARES = ("SLOW", "PS005", "PS006", "PS011", "PS015")
"""Rules that weigh how much of the machine each member gets, and why."""


@pytest.mark.zoo
@pytest.mark.parametrize("name", chosen(DRILLS, alone=SHARES))
def test_the_fault_is_named(name: str) -> None:
    """Among as few workers as it can be named among: each takes three seconds of a core for its start."""
    stage(name, DRILLS[name].fewest, is_warm=is_fault_of_training(name))


@pytest.mark.long
@pytest.mark.zoo
@pytest.mark.parametrize(
    "name", [n for n, d in DRILLS.items() if not d.workers and d.fewest < USUAL]
)
def test_the_fault_is_named_among_the_usual_number(name: str) -> None:
    stage(name, USUAL)


def is_fault_of_training(name: str) -> bool:
    """Return True if the start of the workers has no part in the fault: they may share their imports, which
    are most of the time that a drill takes. `make test-long` starts each of them in the ordinary way."""
    drill = DRILLS[name]
    if "cgroup-memory" in drill.needs:  # what a forked worker shares is not counted there
        return False
    entry = load_catalogue().find_rule(drill.expects)
    return entry is not None and entry.stage in (Stage.RUNTIME, Stage.EXIT) and may_be_warm(drill)


def stage(name: str, workers: int, is_warm: bool = False) -> None:
    if why := lacks(DRILLS[name]):
        pytest.skip(f"not on this machine: {why}")
    result = rehearse(name, workers=workers, is_warm=is_warm)
    assert result.passed, (
        f"found={result.found} left_behind={result.left_behind} "
        f"right_rank={result.right_rank} exit={result.exit_code} "
        f"others={[(f.rule, f.summary) for f in result.others]}\n{result.output[-6000:]}"
    )


def test_rules_and_drills_name_each_other() -> None:
    staged = {(d, e.code) for e in load_catalogue().entries for d in e.rule.drill}
    every = {**DRILLS, **all_host_drills()}
    assert len(every) == len(DRILLS) + len(all_host_drills()), "one name for two drills"
    expected = {(name, drill.expects) for name, drill in every.items() if drill.expects}
    assert staged == expected
