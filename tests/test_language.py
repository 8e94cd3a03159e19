"""The source reads plainly: names say what a value is, docstrings begin with a sentence.

The bounds are those that the source keeps today, rounded up; lower them when it improves.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from allaboard.rules.engine.catalogue import load_catalogue

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


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(SRC.rglob("*.py")):
        if "jobs" not in path.parts:  # written as their users' scripts are
            yield path.relative_to(SRC), ast.parse(path.read_text())


def bindings(tree: ast.Module) -> Iterator[str]:
    """Every name that is bound: arguments, variables, attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def test_names_say_what_a_value_is() -> None:
    everything = [name for _, tree in trees() for name in bindings(tree)]
    vague = [name for name in everything if name in VAGUE]
    assert len(vague) / len(everything) < VAGUE_SHARE


def test_docstrings_begin_with_a_sentence() -> None:
    documented, fragments = 0, []
    for path, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                text = ast.get_docstring(node)
                documented += text is not None
                if text and FRAGMENT.match(text):
                    fragments.append(f"{path}:{node.lineno} {text.splitlines()[0]}")
    assert len(fragments) / documented < FRAGMENT_SHARE, fragments[:20]


def test_no_public_function_is_named_vaguely() -> None:
    wrong = [
        f"{path}:{node.lineno} {node.name}"
        for path, tree in trees()
        for owner in [tree, *(n for n in ast.walk(tree) if isinstance(n, ast.ClassDef))]
        for node in owner.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in VAGUE
    ]
    assert wrong == []


def test_a_name_stands_for_one_thing() -> None:
    """No public module-level function in five files or more."""
    homes: dict[str, set[Path]] = defaultdict(set)
    for path, tree in trees():
        for node in tree.body:
            public = not getattr(node, "name", "_").startswith("_")
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and public:
                homes[node.name].add(path)
    spread = {n: len(files) for n, files in homes.items() if len(files) >= 5}
    assert {n: c for n, c in spread.items() if n not in PROTOCOLS} == {}


def test_exceptions_end_in_error() -> None:
    wrong = [
        f"{path}:{node.lineno} {node.name}"
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and any(getattr(base, "id", "").endswith(("Error", "Exception")) for base in node.bases)
        and not node.name.endswith("Error")
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
