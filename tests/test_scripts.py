"""Scripts in the manner of tutorials and questions: what the CODE family says of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.check.collect import from_files
from allaboard.check.run_rules import judge_configuration
from allaboard.check.runtime_notes import script_notes

SCRIPTS = Path(__file__).parent / "scripts"
GOOD = sorted((SCRIPTS / "good").glob("*.py"))
BAD = [
    (SCRIPTS / "bad" / line.partition(":")[0], line.partition(":")[2].split())
    for line in (SCRIPTS / "bad" / "EXPECTED").read_text().splitlines()
    if line and not line.startswith("#")
]


@pytest.mark.parametrize("path", GOOD, ids=lambda p: p.stem)
def test_nothing_is_said_of_a_good_one(path: Path) -> None:
    assert [f"{f.where}: {f.summary}" for f in judge_configuration(from_files([str(path)]))] == []


@pytest.mark.parametrize(("path", "expected"), BAD, ids=[p.stem for p, _ in BAD])
def test_a_bad_one_is_told_at_its_line(path: Path, expected: list[str]) -> None:
    findings = judge_configuration(from_files([str(path)]))
    assert [f"{f.rule}:{f.where.line}" for f in findings if f.where] == expected
    assert all(f.certainty == "likely" for f in findings)


def test_there_are_thirty() -> None:
    assert len(GOOD) + len(BAD) >= 30
    assert {p for p, _ in BAD} == set((SCRIPTS / "bad").glob("*.py"))


def test_notes_for_a_run(tmp_path: Path) -> None:
    (note,) = script_notes(str(SCRIPTS / "bad" / "torch_no_sampler.py"))
    assert note.rule == "CODE004"
    assert script_notes(str(tmp_path / "absent.py")) == []
    (tmp_path / "broken.py").write_text("def (:\n")
    assert script_notes(str(tmp_path / "broken.py")) == []
