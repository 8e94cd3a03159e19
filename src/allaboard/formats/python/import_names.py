"""Names in a script's syntax tree, spelled out by what the script imported."""

from __future__ import annotations

import ast

_SHORT = {
    "tensorflow.compat.v1": "tensorflow",
    "tensorflow.compat.v2": "tensorflow",
}
_MODULES = {
    "torch.nn.parallel.distributed.DistributedDataParallel": (
        "torch.nn.parallel.DistributedDataParallel"
    ),
    "torch.utils.data.distributed.DistributedSampler": "torch.utils.data.DistributedSampler",
    "tensorflow.distribute.experimental.MultiWorkerMirroredStrategy": (
        "tensorflow.distribute.MultiWorkerMirroredStrategy"
    ),
    "tensorflow.distribute.experimental.CollectiveAllReduceStrategy": (
        "tensorflow.distribute.MultiWorkerMirroredStrategy"
    ),
}
"""Older places of the same things."""


def imported_names(tree: ast.Module) -> dict[str, str]:
    """Local name to full name, for imports anywhere in the script."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    names[alias.asname] = alias.name
                else:
                    top = alias.name.partition(".")[0]
                    names[top] = top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def full_name(node: ast.expr, names: dict[str, str]) -> str:
    """The full dotted name of an expression; "" where it is none."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    parts.append(names.get(node.id, node.id))
    full = ".".join(reversed(parts))
    for long, short in _SHORT.items():
        if full.startswith(long + "."):
            full = short + full[len(long) :]
    return _MODULES.get(full, full)
