"""The source read as a house: rooms are folders, arrows are imports. For the layer test and the picture."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SRC = Path(__file__).parents[1] / "src" / "allaboard"
ONE_ROOM = ("facts", "probe", "drills")
"""Their folders sort what is in them; they are no rooms of their own."""


def files() -> Iterator[Path]:
    return (f for f in sorted(SRC.rglob("*.py")) if "jobs" not in f.parts)


def room_of(file: Path) -> str:
    """The folder of a file; the file itself at the top."""
    folder = file.relative_to(SRC).parent.as_posix()
    if folder == ".":
        return file.stem
    top = folder.partition("/")[0]
    return top if top in ONE_ROOM else folder


MODULES = {
    ".".join(f.relative_to(SRC.parent).with_suffix("").parts).removesuffix(".__init__"): f
    for f in files()
}
NAMED = re.compile(r"allaboard(?:\.[a-z_0-9]+)+")


def module_of(name: str) -> str:
    """The module that a dotted name leads to; "" if it is none of ours."""
    while name and name not in MODULES:
        name = name.rpartition(".")[0]
    return name if "." in name else ""


@cache
def imported(file: Path) -> tuple[tuple[int, str], ...]:
    """Every module of ours that a file imports, in function bodies too, with the line."""
    return tuple(_imported(file))


def _imported(file: Path) -> Iterator[tuple[int, str]]:
    own = next(name for name, other in MODULES.items() if other == file)
    package = own if file.name == "__init__.py" else own.rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if name := module_of(alias.name):
                    yield node.lineno, name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, *([base] if base else [])])
            for alias in node.names:
                if name := module_of(f"{base}.{alias.name}"):
                    yield node.lineno, name


def named(file: Path) -> Iterator[tuple[int, str]]:
    """Every module of ours that a string names: for ``-m`` or importlib. Docstrings are none of these."""
    for node in ast.walk(ast.parse(file.read_text())):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and NAMED.fullmatch(node.value)
            and node.value in MODULES
        ):
            yield node.lineno, node.value


def place(file: Path, line: int) -> str:
    return f"{file.relative_to(SRC)}:{line}"
