"""The rooms of the house: imports point one way, files form no cycle, and some rooms never meet."""

from __future__ import annotations

import sys
from pathlib import Path

from house import MODULES, SRC, files, imported, named, place, room_of
from source_facts import read_facts

# A room may import itself, and the rooms of earlier rows.
ROWS: list[tuple[str, ...]] = [
    ("errors", "late_pattern"),
    ("clock", "facts", "launch/parameter_servers", "launch/serving", "plugins", "probe"),
    ("contracts", "hosts", "formats", "formats/dumps"),
    (
        "analysis",
        "formats/dumps/thread_dumps",
        "hosts/awaited",
        "hosts/gpu",
        "analysis/data",
        "analysis/failures/mistakes",
        "analysis/log_ends",
        "analysis/parameter_servers",
        "analysis/roll_call",
    ),
    (
        "blackbox",
        "configuration/spec",
        "diagnosis/logs/packed",
        "diagnosis/wordings",
        "formats/python",
        "formats/python/pieces",
        "formats/shell",
        "launch",
    ),
    ("configuration/slurm_steps", "formats/python/flow"),
    ("formats/manifests", "formats/python/steps", "configuration/sources", "protocol"),
    ("analysis/performance", "analysis/stacks", "configuration"),
    ("analysis/failures", "analysis/network", "analysis/resources"),
    ("analysis/collectives", "analysis/configuration", "cluster/transport", "coordinator/trackers"),
    (
        "analysis/stalls",
        "cluster/connections",
        "diagnosis/instruments",
        "diagnosis/platforms",
        "diagnosis/readers",
    ),
    ("feed", "policy/restart", "policy/retry", "rules", "sampling"),
    ("policy/end", "rules/engine"),
    ("check/launched", "coordinator", "diagnosis/logs/nccl", "report"),
    ("diagnosis/logs",),
    (
        "agent/observation",
        "agent/output",
        "check",
        "cluster",
        "drills",
        "faces/report",
        "faces/watch",
        "schedulers",
    ),
    ("agent", "diagnosis/live", "faces/sidecar", "faces/web"),
    ("faces/metrics", "faces/notify"),
    ("faces/experiments", "faces/telemetry"),
    ("options",),
    ("dropin/attach", "preflight"),
    ("cli", "dropin"),
    ("tensorflow", "jax", "__main__"),
]
LEVEL = {room: row for row, rooms in enumerate(ROWS) for room in rooms}
PLUGIN_ROOMS = {
    "rules",
    "drills",
    "configuration/sources",
    "diagnosis/instruments",
    "diagnosis/platforms",
    "diagnosis/readers",
}
"""Each file stands alone: it never imports another one of its room."""
NEVER = {
    "hosts": ("analysis", "launch"),
    "formats": ("analysis",),
    "cluster/transport": ("coordinator", "policy", "rules"),
    "coordinator": ("agent", "cluster", "report", "hosts", "launch", "sampling"),
    "policy": ("coordinator", "agent", "report"),
    "analysis": ("rules", "coordinator", "report", "hosts"),
    # Faces compute nothing: they render the facts that they are handed.
    "report": ("analysis", "coordinator", "policy", "rules", "agent"),
    "faces": ("analysis", "coordinator", "policy", "rules", "agent"),
    # What is published is a picture: nothing of the feed can reach into the job.
    "feed": ("coordinator", "policy", "rules", "agent", "sampling"),
}
"""Rooms, with all below them, and what they may never import, whatever the rows say."""
STARTED = {
    # The program that is attached to starts its agent in a process of its own.
    ("probe", "dropin/attach"),
    # An agent is known by its command line.
    ("hosts", "dropin/attach"),
}
"""Rooms that name a module to run (``-m``) of a later row: no import ties them to it."""


def test_every_room_has_a_row_and_every_row_a_room() -> None:
    rooms = {room_of(f) for f in files() if f.read_text().count("\n") > 1}
    assert rooms - {"__init__"} == LEVEL.keys()


def test_imports_point_one_way() -> None:
    wrong = []
    for file in files():
        room = room_of(file)
        if room == "__init__":
            continue
        for line, name in imported(file):
            other = room_of(MODULES[name])
            if other != room and LEVEL[other] >= LEVEL[room]:
                wrong.append(f"{place(file, line)} {room} -> {other}")
            plain = file.stem != "__init__" and MODULES[name].stem != "__init__"
            inside = room in PLUGIN_ROOMS and file.parent == MODULES[name].parent
            if other == room and plain and inside and room != "drills":
                wrong.append(f"{place(file, line)} siblings: {name}")
    assert wrong == []


def test_what_is_run_or_loaded_by_name_is_known() -> None:
    """A string that names a module points down too, or is one of the few that start a process."""
    wrong = []
    for file in files():
        room = room_of(file)
        for line, name in named(file):
            other = room_of(MODULES[name])
            if room == "__init__" or other == room or (room, other) in STARTED:
                continue
            if LEVEL[other] >= LEVEL[room]:
                wrong.append(f"{place(file, line)} {room} names {name}")
    assert wrong == []


def test_no_files_import_each_other() -> None:
    """No cycle of files, within a room either."""
    arrows = {name: {n for _, n in imported(file)} - {name} for name, file in MODULES.items()}
    left = {name: set(others) for name, others in arrows.items()}
    while free := [name for name, others in left.items() if not others]:
        for name in free:
            del left[name]
        for others in left.values():
            others.difference_update(free)
    assert sorted(left) == []


def test_rooms_that_never_meet() -> None:
    wrong = []
    for file in files():
        room = room_of(file)
        for above, never in NEVER.items():
            if room == above or room.startswith(above + "/"):
                for line, name in imported(file):
                    other = room_of(MODULES[name])
                    if other.partition("/")[0] in never:
                        wrong.append(f"{place(file, line)} {room} -> {other}")
    assert wrong == []


def test_parameter_servers_are_behind_an_interface() -> None:
    """What other rooms need to know of such jobs, they import from the room itself."""
    room = "allaboard.analysis.parameter_servers"
    wrong = [
        f"{place(file, line)} {name}"
        for file in files()
        for line, name in imported(file)
        if name.startswith(room + ".") and room_of(file) != "analysis/parameter_servers"
    ]
    assert wrong == []


def test_the_probe_imports_the_standard_library_alone() -> None:
    wrong = []
    for file in files():
        if room_of(file) != "probe":
            continue
        for imported_name in read_facts(file).imports:
            if imported_name.level or (imported_name.is_from and not imported_name.base):
                continue
            name = imported_name.base or imported_name.name
            top = name.partition(".")[0]
            if "adapters" in file.parts and top in ("torch", "tensorflow", "jax"):
                continue  # inside a call, when the user has imported it already
            if top not in sys.stdlib_module_names and top != "_allaboard_probe":
                wrong.append(f"{place(file, imported_name.line)} {name}")
    assert wrong == []


def test_no_room_is_named_for_nothing() -> None:
    nothing = {"utils", "util", "common", "helpers", "helper", "manager", "misc", "core"}
    assert [f for f in files() if nothing & set(f.with_suffix("").parts[-3:])] == []


def test_no_room_is_crowded() -> None:
    """About 25 files a folder, but for the catalogue of rules."""
    crowded = {
        folder.relative_to(SRC).as_posix(): count
        for folder in {f.parent for f in files()} - {SRC / "rules"}
        if (count := sum(f.name != "__init__.py" for f in folder.glob("*.py"))) > 26
    }
    assert crowded == {}


def test_each_file_of_tests_has_a_name_of_its_own() -> None:
    """They have no packages: two of one name can't be run together, as `make test-long` does."""
    names = [p.name for p in Path(__file__).parent.rglob("test_*.py")]
    assert sorted(n for n in set(names) if names.count(n) > 1) == []
