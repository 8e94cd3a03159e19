"""Roles that a script's own text asks for. The text is parsed, never run.

Only the script itself is read: what a module of its own does is not known, so nothing is concluded
from a name that is absent, except that no server is made here.
"""

from __future__ import annotations

import ast
from pathlib import Path

import msgspec

NameAtLine = tuple[str, int]
"""A name of the framework and the line where it stands."""

CHIEF_NAMES = ("ParameterServerStrategy", "ParameterServerStrategyV2", "ClusterCoordinator")
SERVER_NAMES = (*CHIEF_NAMES, "replica_device_setter", "SyncReplicasOptimizer")
COLLECTIVE_NAMES = ("MultiWorkerMirroredStrategy", "init_process_group", "DistributedDataParallel")
SERVING_NAMES = ("Server", "train_and_evaluate")


class ScriptRoles(msgspec.Struct, frozen=True, kw_only=True):
    """Roles that a script's text asks for."""

    is_readable: bool = False
    """True if the text could be parsed."""
    serves_itself: bool = False
    """True if the script makes a server itself."""
    needs_servers: NameAtLine | None = None
    """First name that needs parameter servers, or None."""
    needs_chief: NameAtLine | None = None
    """First name that needs a chief, or None."""
    collective: NameAtLine | None = None
    """First name of a collective job, or None."""


def read_script_roles(path: Path | None) -> ScriptRoles:
    """Read a script. Nothing is known of a module (None), a folder, or what is not Python."""
    if path is None:
        return ScriptRoles()
    try:
        if not path.is_file():
            return ScriptRoles()
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
