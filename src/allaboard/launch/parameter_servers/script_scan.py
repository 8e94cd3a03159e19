"""What a script's own text says of roles. It is read by `ast`, never run.

Only the script itself is read: what a module of its own does is not known, and then nothing is
concluded from a name that is absent, but that no server is made here.
"""

from __future__ import annotations

import ast
from pathlib import Path

import msgspec

NameAtLine = tuple[str, int]
"""A name of the framework and the line where it stands."""

CHIEF_NAMES = ("ParameterServerStrategy", "ParameterServerStrategyV2", "ClusterCoordinator")
SERVER_NAMES = (*CHIEF_NAMES, "replica_device_setter", "SyncReplicasOptimizer")
COLLECTIVE_NAMES = (
    "MultiWorkerMirroredStrategy",
    "init_process_group",
    "DistributedDataParallel",
)
SERVING_NAMES = ("Server", "train_and_evaluate")


class ScriptRoles(msgspec.Struct, frozen=True, kw_only=True):
    """``known``: the text could be read; ``serves``: it makes a server itself; the others are the
    first name that says so."""

    is_readable: bool = False
    serves_itself: bool = False
    needs_servers: NameAtLine | None = None
    needs_chief: NameAtLine | None = None
    collective: NameAtLine | None = None


def read_script_roles(path: Path | None) -> ScriptRoles:
    """Reads a script; nothing is known of a module (None), a folder, or what is not Python."""
    if path is None or not path.is_file():
        return ScriptRoles()
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return ScriptRoles()
    names: dict[str, int] = {}
    for node in ast.walk(tree):
        name = (
            node.attr
            if isinstance(node, ast.Attribute)
            else node.id
            if isinstance(node, ast.Name)
            else ""
        )
        if name:
            names[name] = min(getattr(node, "lineno", 0), names.get(name, 1 << 30))
    return ScriptRoles(
        is_readable=True,
        serves_itself=any(name in names for name in SERVING_NAMES),
        needs_servers=_first_name(names, SERVER_NAMES),
        needs_chief=_first_name(names, CHIEF_NAMES),
        collective=_first_name(names, COLLECTIVE_NAMES),
    )


def _first_name(names: dict[str, int], candidates: tuple[str, ...]) -> NameAtLine | None:
    occurrences = [(name, names[name]) for name in candidates if name in names]
    return min(occurrences, key=lambda s: s[1]) if occurrences else None
