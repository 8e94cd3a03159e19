"""The source reads plainly: names say what a value is, docstrings begin with a sentence.

The bounds are those that the source keeps today, rounded up; lower them when it improves.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from allaboard.rules.engine.catalogue import load_catalogue
from source_facts import SourceFacts, read_facts

SRC = Path(__file__).parents[1] / "src" / "allaboard"

VAGUE = frozenset(
    {
        "told", "said", "one", "found", "other", "others", "seen", "known", "there", "first",
        "last", "given", "what", "at", "who", "held", "those", "rest", "some", "many", "both",
        "left", "own", "same", "wanted", "asked", "made", "kept", "gone", "inside", "before",
        "after", "all_", "everybody", "people", "word", "words", "place", "began", "mine", "usual",
        "odd",
    }
)  # fmt: skip
"""Names that need their surroundings to be understood."""
FRAGMENT = re.compile(
    r"^(\.\.\.|As |The same|What |Who |Whom |Whose |Those |Of |In |By |Where |Whether |How |For |With |Until "
    r"|Also |Without |Before |After |At |To |From )"
)
"""Beginnings of docstrings that are no sentence."""
PROTOCOLS = frozenset(
    {"check", "main", "add_arguments", "read_log", "read_material", "declared", "hook", "ports"}
)
"""Names that many files define on purpose: each is one interface with one meaning."""


def sources() -> Iterator[tuple[Path, SourceFacts]]:
    for path in sorted(SRC.rglob("*.py")):
        if "jobs" not in path.parts:  # written as their users' scripts are
            yield path.relative_to(SRC), read_facts(path)


def test_names_say_what_a_value_is() -> None:
    everything = [name for _, facts in sources() for name in facts.bindings]
    vague = [name for name in everything if name in VAGUE]
    assert len(vague) / len(everything) < VAGUE_SHARE


def test_docstrings_begin_with_a_sentence() -> None:
    documented, fragments = 0, []
    for path, facts in sources():
        for defined in facts.definitions:
            documented += defined.docstring is not None
            if defined.docstring and FRAGMENT.match(defined.docstring):
                fragments.append(f"{path}:{defined.line} {defined.docstring}")
    assert len(fragments) / documented < FRAGMENT_SHARE, fragments[:20]


def test_no_public_function_is_named_vaguely() -> None:
    wrong = [
        f"{path}:{defined.line} {defined.name}"
        for path, facts in sources()
        for defined in facts.definitions
        if (defined.is_of_module or defined.is_of_class)
        and not defined.is_class
        and defined.name in VAGUE
    ]
    assert wrong == []


def test_a_name_stands_for_one_thing() -> None:
    """No public module-level function in five files or more."""
    homes: dict[str, set[Path]] = defaultdict(set)
    for path, facts in sources():
        for defined in facts.definitions:
            if defined.is_of_module and not defined.is_class and not defined.name.startswith("_"):
                homes[defined.name].add(path)
    spread = {n: len(files) for n, files in homes.items() if len(files) >= 5}
    assert {n: c for n, c in spread.items() if n not in PROTOCOLS} == {}


def test_exceptions_end_in_error() -> None:
    wrong = [
        f"{path}:{defined.line} {defined.name}"
        for path, facts in sources()
        for defined in facts.definitions
        if any(base.endswith(("Error", "Exception")) for base in defined.bases)
        and not defined.name.endswith("Error")
    ]
    assert wrong == []


def test_titles_of_examples_say_the_situation() -> None:
    """Readers of a rule's page do not see an example's facts: one or two words cannot describe them."""
    short = [
        f"{e.code}: {title}"
        for e in load_catalogue().entries
        for title in (*e.rule.fires_on, *e.rule.silent_on)
        if len(title.split()) < MIN_TITLE_WORDS
    ]
    assert short == []


VAGUE_SHARE = 0.01
FRAGMENT_SHARE = 0.02
MIN_TITLE_WORDS = 3
