"""`allaboard drill` says what each drill stages, and in words how one went."""

from __future__ import annotations

import msgspec
import pytest

from allaboard.cli import drill
from allaboard.drills.run_drill import Rehearsal, all_drills
from allaboard.facts import Certainty, Finding, Severity

PASSED = Rehearsal(
    drill="asleep",
    rule="HANG005",
    found=True,
    right_rank=True,
    seconds=3.14,
    exit_code=1,
    right_exit=True,
    others=(),
    findings=(),
    output="",
)


def test_in_a_pipe_each_drill_is_a_line_with_its_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert drill.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        [name, staged.expects] for name, staged in all_drills().items()
    ]
    assert all(line.endswith(d.title) for line, d in zip(lines, all_drills().values(), strict=True))


def test_a_drill_whose_fault_was_found() -> None:
    assert drill.verdict(PASSED) == "HANG005 reported it 3.1 s after the fault"
    assert drill.verdict(msgspec.structs.replace(PASSED, seconds=None)) == "HANG005 reported it"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"found": False, "right_rank": False}, "HANG005 did not report it"),
        ({"right_rank": False}, "HANG005 reported another rank 3.1 s after the fault"),
        (
            {"right_exit": False, "exit_code": 3, "left_behind": True},
            "allaboard run ended with exit code 3; files of the run were left in memory",
        ),
    ],
)
def test_a_drill_that_failed_says_what_is_not_as_it_should_be(
    changes: dict[str, bool | int], said: str
) -> None:
    failed = msgspec.structs.replace(PASSED, **changes)
    assert not failed.passed and drill.verdict(failed) == said


def test_a_drill_with_a_finding_too_many() -> None:
    other = Finding(
        rule="NET008",
        name="slow-link",
        stage="runtime",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        summary="a link is slow",
        who=(),
        evidence=(),
        fix="",
    )
    failed = msgspec.structs.replace(PASSED, others=(other,))
    assert not failed.passed and drill.verdict(failed) == "also reported: NET008"
