"""Imports point one way, in function bodies too; siblings of a plug-in room never meet."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SRC = Path(__file__).parents[1] / "src" / "allaboard"

# A room may import itself and rooms of earlier rows.
ROWS: list[tuple[str, ...]] = [
    ("facts", "probe", "clock", "reaper", "testbed", "serving"),
    ("contracts", "rollcall"),
    ("evidence",),
    ("discover", "hosts", "formats", "stacks", "roles"),
    ("spec",),
    ("rules", "drills", "resolve", "witnesses"),
    ("catalogue",),
    ("recover", "starting"),
    ("diagnose", "decide", "launch"),
    ("config", "postmortem"),
    ("coordinator",),
    ("report",),
    ("meeting",),
    ("agent", "lint"),
    ("rehearse", "rehearse_spread", "launching"),
    ("attached",),
    ("rehearse_hosts", "preflight"),
    ("dropin",),
    ("tensorflow", "jax"),
    ("cli",),
    ("__main__",),
]
LEVEL = {room: row for row, rooms in enumerate(ROWS) for room in rooms}
PLUGIN_ROOMS = {"rules", "drills", "resolve", "launch", "witnesses"}
STDLIB_ONLY = {"probe"}


def files() -> Iterator[tuple[str, Path]]:
    for file in sorted(SRC.rglob("*.py")):
        room = file.relative_to(SRC).parts[0].removesuffix(".py")
        if room != "__init__" and "jobs" not in file.parts:
            yield room, file


def imported(file: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, a.name) for a in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            if node.module == "allaboard":
                yield from ((node.lineno, f"allaboard.{a.name}") for a in node.names)
            else:
                yield node.lineno, node.module


def test_every_room_has_a_row() -> None:
    rooms = {room for room, _ in files()}
    assert rooms <= LEVEL.keys(), f"give it a row here: {sorted(rooms - LEVEL.keys())}"


def test_imports_point_one_way() -> None:
    wrong = []
    for room, file in files():
        for line, name in imported(file):
            parts = name.split(".")
            if parts[0] != "allaboard" or len(parts) < 2 or parts[1] not in LEVEL:
                continue
            other = parts[1]
            if other != room and LEVEL[other] >= LEVEL[room]:
                wrong.append(f"{file.relative_to(SRC)}:{line} {room} -> {other}")
            if (
                other == room
                and room in PLUGIN_ROOMS
                and file.stem != "__init__"
                and len(parts) > 2
            ):
                wrong.append(f"{file.relative_to(SRC)}:{line} siblings: {name}")
    assert wrong == []


def test_the_probe_imports_the_standard_library_alone() -> None:
    import sys

    wrong = []
    for room, file in files():
        if room in STDLIB_ONLY:
            for line, name in imported(file):
                top = name.partition(".")[0]
                if file.parent.name == "adapters" and top == file.stem:
                    continue  # inside a call, when the user has imported it already
                if top not in sys.stdlib_module_names and top != "_allaboard_probe":
                    wrong.append(f"{file.relative_to(SRC)}:{line} {name}")
    assert wrong == []


def test_no_room_is_named_for_nothing() -> None:
    nothing = {"utils", "util", "common", "helpers", "helper", "manager", "misc", "core"}
    assert [f for _, f in files() if nothing & set(f.with_suffix("").parts[-3:])] == []


def test_each_file_of_tests_has_a_name_of_its_own() -> None:
    """They have no packages: two of one name can't be run together, as `make test-long` does."""
    names = [p.name for p in Path(__file__).parent.rglob("test_*.py")]
    assert sorted(n for n in set(names) if names.count(n) > 1) == []
