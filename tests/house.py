"""The source read as a house: rooms are folders, arrows are imports. For the layer test and the picture."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from source_facts import read_facts

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
NAMES = {file: name for name, file in MODULES.items()}
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
    own = NAMES[file]
    package = own if file.name == "__init__.py" else own.rpartition(".")[0]
    for line, base, level, imported_name, is_from in read_facts(file).imports:
        if not is_from:
            name = module_of(imported_name)
        else:
            parents = package.split(".")[: len(package.split(".")) - level + 1] if level else []
            name = module_of(".".join([*parents, *([base] if base else []), imported_name]))
        if name:
            yield line, name


def named(file: Path) -> Iterator[tuple[int, str]]:
    """Every module of ours that a string names: for ``-m`` or importlib. Docstrings are none of these."""
    for line, text in read_facts(file).names:
        if NAMED.fullmatch(text) and text in MODULES:
            yield line, text


def place(file: Path, line: int) -> str:
    return f"{file.relative_to(SRC)}:{line}"
