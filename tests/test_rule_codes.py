"""How findings relate is declared on the rules: no module outside ``rules`` decides it by a rule's code."""

from __future__ import annotations

import re
from pathlib import Path

from source_facts import SourceFacts, facts_of, read_facts

SRC = Path(__file__).parents[1] / "src" / "allaboard"
CODE = re.compile(r"[A-Z]{2,5}[0-9]{3}")
MAY_NAME_RULES = (
    "rules",
    "drills",
    "diagnosis/instruments",
    "diagnosis/platforms",
    "diagnosis/readers",
    "diagnosis/wordings",
)
"""Rules themselves, what drills expect, and the rows of readers: which rule a message means."""


def codes_in(facts: SourceFacts) -> list[tuple[int, str]]:
    """Lines and values of the strings that are a rule's code."""
    return [(line, text) for line, text in facts.names if CODE.fullmatch(text)]


def test_no_module_decides_by_a_code() -> None:
    named = []
    for file in sorted(SRC.rglob("*.py")):
        path = file.relative_to(SRC).as_posix()
        if not path.startswith(tuple(f"{room}/" for room in MAY_NAME_RULES)):
            named += [f"{path}:{line} {code}" for line, code in codes_in(read_facts(file))]
    assert named == []


def test_the_engine_names_none_either() -> None:
    engine = SRC / "rules" / "engine"
    assert [c for file in sorted(engine.glob("*.py")) for c in codes_in(read_facts(file))] == []


def test_a_code_is_found() -> None:
    assert codes_in(facts_of('if finding.rule in ("EXIT005", "X"): pass')) == [(1, "EXIT005")]
