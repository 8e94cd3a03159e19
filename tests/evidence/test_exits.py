"""What the rules of ends say of steps and of debuggers."""

from __future__ import annotations

from allaboard.catalogue import catalogue
from allaboard.facts import Claim
from allaboard.facts.samples import ended, job, stalled, waiting


def _claim(code: str, view: object) -> Claim:
    rule = next(e.rule for e in catalogue().entries if e.code == code)
    (claim,) = rule.check(view)
    return claim


def test_numbers_of_steps_are_told_where_they_differ() -> None:
    gone = ended(1, at=90.5, code=0, member={"step": 41})
    equal = _claim("EXIT004", stalled(waiting(0, step=41), gone))
    assert not any("steps done" in e.observed for e in equal.evidence)
    fewer = _claim("EXIT004", stalled(waiting(0, step=42), gone))
    assert "steps done: rank 1: 41, rank 0: 42" in [e.observed for e in fewer.evidence]


def test_a_breakpoint_is_to_be_removed_and_not_the_line_after_it_mended() -> None:
    claim = _claim("EXIT002", job(ended(1, raised=("BdbQuit", "")), waiting(0)))
    assert claim.fix.startswith("remove the breakpoint()") and "mend" not in claim.fix


def test_the_line_that_ran_a_command_is_not_what_failed() -> None:
    said = (
        "CalledProcessError",
        "Command '['python', 'train.py']' returned non-zero exit status 1.",
    )
    claim = _claim("EXIT002", job(ended(1, raised=said), waiting(0)))
    assert (
        claim.fix.startswith("see in logs/worker-1.log why the command")
        and "mend /" not in claim.fix
    )
