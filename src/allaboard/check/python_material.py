"""A Python script or a notebook as material: its literals for the sources, its text for the CODE rules."""

from __future__ import annotations

import ast
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from allaboard.check.read_file import Source
from allaboard.facts import FormatError, Material, ScriptFacts

if TYPE_CHECKING:
    from allaboard.check.given_modules import GivenModules


def read_python_script(
    source: Source, modules: GivenModules | None = None, is_piece: bool = False
) -> list[tuple[Material, ScriptFacts]]:
    """Return what a Python script states; ``modules`` are the files whose constants it may import.

    Of a piece of a script, the usual imports are added at its end, where they move no line.

    Raises:
        FormatError: the script does not parse.
    """
    from allaboard.formats.python.pieces.missing_imports import missing_imports

    tree = _parse(source.text)
    missing = missing_imports(tree)
    text, indentation = source.text, indentation_of_block(source.text)
    if missing.text:
        text += "".join(f"\n{indentation}{line}" for line in missing.text.split("\n"))
        tree = _parse(text)
    material, script = _read(source.name, text, modules, tree)
    if is_piece or indentation or (missing.text and missing.leaves_others):
        script = msgspec.structs.replace(script, is_piece=True)
    return [(material, script)]


def indentation_of_block(text: str) -> str:
    """Return the indentation of a text's first line of code; "" if it is no block of a larger script."""
    first = next((line for line in text.split("\n") if line.strip() and line.strip()[0] != "#"), "")
    return first[: len(first) - len(first.lstrip())]


def read_notebook(
    source: Source, modules: GivenModules | None = None
) -> list[tuple[Material, ScriptFacts]]:
    """Return what the scripts of a Jupyter notebook state.

    Raises:
        FormatError: the file is not JSON.
    """
    from allaboard.formats.json_nodes import read_json
    from allaboard.formats.python.notebook import notebook_scripts

    scripts = []
    for text in notebook_scripts(read_json(source.text)):
        # A file that a cell writes may be torn, or in another version's syntax.
        with suppress(FormatError):
            material, script = _read(source.name, text, modules, _parse(text))
            scripts.append((material, msgspec.structs.replace(script, is_notebook=True)))
    return scripts


def _read(
    name: str, text: str, modules: GivenModules | None, tree: ast.Module
) -> tuple[Material, ScriptFacts]:
    from allaboard.formats.python.literals import read_python

    imported = modules.constants(name, tree) if modules is not None else {}
    try:
        literals = read_python(tree, text, name, imported)
    except RecursionError:
        raise FormatError("is nested too deep to be read", 1, 1) from None
    material = Material(
        kind="python",
        file=name,
        variables=literals.variables,
        opaque=frozenset(literals.opaque),
        calls=tuple(literals.calls),
        text=text,
    )
    constants = tuple((local, ast.unparse(value)) for local, value in imported.items())
    return material, ScriptFacts(source=text, file=name, imported=constants)


def _parse(text: str) -> ast.Module:
    from allaboard.formats.python_parser import parse_without_warnings

    try:
        return parse_without_warnings(text)
    except SyntaxError as error:
        version = ".".join(map(str, sys.version_info[:2]))
        problem_text = f"cannot be read as Python {version}: {error.msg}"
        near = (error.text or "").strip()[:60]
        raise FormatError(
            problem_text, error.lineno or 1, max(error.offset or 1, 1), near
        ) from None
    except (ValueError, RecursionError, MemoryError):
        raise FormatError("is nested too deep to be read", 1, 1) from None
