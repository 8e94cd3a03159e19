"""What the tests of the house ask of the source: each file is read and walked once, for all of them.

The trees themselves, of more than a thousand files, would fill the memory and slow all tests that follow.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import NamedTuple

MAX_NAME_LENGTH = 120
"""Characters of the longest string that is kept: a name, not a text."""


class Definition(NamedTuple):
    """A class or a function."""

    name: str
    line: int
    docstring: str | None
    """Its first line; None without one."""
    is_class: bool
    is_of_module: bool
    """True directly in the module's body."""
    is_of_class: bool
    """True directly in the body of a class."""
    bases: tuple[str, ...]
    """Those that are plain names, of a class."""


class Import(NamedTuple):
    """One name of an import, in function bodies too."""

    line: int
    base: str
    """The module after ``from``; "" for ``import name``."""
    level: int
    """Dots of a relative import."""
    name: str
    is_from: bool


class SourceFacts(NamedTuple):
    """All that the tests want to know of a file."""

    imports: tuple[Import, ...]
    names: tuple[tuple[int, str], ...]
    """Line and value of each string without a space."""
    bindings: tuple[str, ...]
    """Every name that is bound: arguments, variables, attributes."""
    definitions: tuple[Definition, ...]


@cache
def read_facts(file: Path) -> SourceFacts:
    """Return the facts of a Python file."""
    return facts_of(file.read_text())


def facts_of(source: str) -> SourceFacts:
    """Return the facts of Python source."""
    tree = ast.parse(source)
    imports: list[Import] = []
    names: list[tuple[int, str]] = []
    bindings: list[str] = []
    definitions: list[Definition] = []
    of_module, of_class = set(map(id, tree.body)), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            if isinstance(node.ctx, ast.Store):
                bindings.append(node.id if isinstance(node, ast.Name) else node.attr)
        elif isinstance(node, ast.Constant):
            text = node.value
            if isinstance(text, str) and len(text) < MAX_NAME_LENGTH and " " not in text:
                names.append((node.lineno, text))
        elif isinstance(node, ast.arg):
            bindings.append(node.arg)
        elif isinstance(node, ast.Import):
            imports += [Import(node.lineno, "", 0, a.name, False) for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            imports += [Import(node.lineno, base, node.level, a.name, True) for a in node.names]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if isinstance(node, ast.ClassDef):  # met before what is in it
                of_class.update(map(id, node.body))
            definitions.append(
                _definition(
                    node, is_of_module=id(node) in of_module, is_of_class=id(node) in of_class
                )
            )
    return SourceFacts(tuple(imports), tuple(names), tuple(bindings), tuple(definitions))


def _definition(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef,
    is_of_module: bool,
    is_of_class: bool,
) -> Definition:
    bases = node.bases if isinstance(node, ast.ClassDef) else []
    text = ast.get_docstring(node)
    return Definition(
        node.name,
        node.lineno,
        None if text is None else text.partition("\n")[0],
        isinstance(node, ast.ClassDef),
        is_of_module,
        is_of_class,
        tuple(b.id for b in bases if isinstance(b, ast.Name)),
    )
