"""What people bring is answered as rightly as it was: the cases of bench, and healthy logs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[1] / "bench"
sys.path.insert(0, str(BENCH))

import field_cases  # noqa: E402 - of bench, which is no package
import healthy_logs  # noqa: E402

CASES = [
    case
    for folder in (field_cases.FOLDER, BENCH / "corpus")
    for case in field_cases.read_cases(folder)
]
MIN_PUBLIC_REPORTS = 70
MIN_SHARE = 0.95
"""Share of the cases that must be answered rightly in all parts."""


@pytest.mark.parametrize(
    "case", [c for c in CASES if not c.open], ids=lambda c: f"{c.kind}-{c.name}"
)
def test_the_answer_is_right(case: field_cases.Case) -> None:
    result = field_cases.score(case, field_cases.diagnose_case(case))
    assert not result.wrong, result.answer


def test_what_is_open_is_not_right_yet() -> None:
    """An answer that has become right must be kept right: its `open` line is to go."""
    open_cases = [c for c in CASES if c.open]
    right = [
        c.name for c in open_cases if not field_cases.score(c, field_cases.diagnose_case(c)).wrong
    ]
    assert right == []


def test_few_cases_are_open() -> None:
    assert sum(not c.open for c in CASES) >= MIN_SHARE * len(CASES)


def test_there_are_enough_public_reports() -> None:
    reports = [c for c in CASES if c.is_public]
    assert len({c.source for c in reports}) >= MIN_PUBLIC_REPORTS
    assert all(": " in c.source and "http" not in c.source for c in reports)


def test_names_of_cases_are_unique() -> None:
    names = [(c.kind, c.name) for c in CASES]
    assert len(set(names)) == len(names)


def test_no_healthy_log_is_blamed() -> None:
    assert not healthy_logs.judge()


def test_a_wrong_answer_is_scored_as_wrong() -> None:
    """The scorer can fail: the right answer to one case is wrong for another."""
    killed, full = (
        next(c for c in CASES if c.name == n) for n in ("killed-by-torchrun", "disk-full")
    )
    assert set(field_cases.score(full, field_cases.diagnose_case(killed)).wrong) >= {
        "cause",
        "next",
    }
