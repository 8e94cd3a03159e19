"""What a script's own text says of roles. It is read by `ast`, never run.

Only the script itself is read: what a module of its own does is not known, and then nothing is
concluded from a name that is absent, but that no server is made here.
"""

from __future__ import annotations

import ast
from pathlib import Path

import msgspec

Seen = tuple[str, int]
"""A name of the framework and the line where it stands."""

CHIEF = ("ParameterServerStrategy", "ParameterServerStrategyV2", "ClusterCoordinator")
SERVERS = (*CHIEF, "replica_device_setter", "SyncReplicasOptimizer")
COLLECTIVE = (
    "MultiWorkerMirroredStrategy",
    "init_process_group",
    "DistributedDataParallel",
)
SERVES = ("Server", "train_and_evaluate")


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """``known``: the text could be read; ``serves``: it makes a server itself; the others are the
    first name that says so."""

    known: bool = False
    serves: bool = False
    needs_servers: Seen | None = None
    needs_chief: Seen | None = None
    collective: Seen | None = None


def read(path: Path | None) -> Reading:
    """Reads a script; nothing is known of a module (None), a folder, or what is not Python."""
    if path is None or not path.is_file():
        return Reading()
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return Reading()
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
    return Reading(
        known=True,
        serves=any(name in names for name in SERVES),
        needs_servers=_first(names, SERVERS),
        needs_chief=_first(names, CHIEF),
        collective=_first(names, COLLECTIVE),
    )


def _first(names: dict[str, int], wanted: tuple[str, ...]) -> Seen | None:
    seen = [(name, names[name]) for name in wanted if name in names]
    return min(seen, key=lambda s: s[1]) if seen else None
