"""Full names of what a script's syntax tree refers to, by the script's imports."""

from __future__ import annotations

import ast

_MODULE_ALIASES = {
    "tensorflow.compat.v1": "tensorflow",
    "tensorflow.compat.v2": "tensorflow",
}
_OLD_NAMES = {
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
"""Current full names, by older ones of the same things."""


def imported_names(tree: ast.Module) -> dict[str, str]:
    """Return local name to full name, for imports anywhere in the script."""
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
    for statement in tree.body:
        # tf1 = tf.compat.v1
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Attribute):
            full, target = full_name(statement.value, {}), statement.targets[-1]
            is_imported = full.partition(".")[0] in names
            if is_imported and isinstance(target, ast.Name):
                names.setdefault(target.id, full_name(statement.value, names))
    return names


def full_name(node: ast.expr, names: dict[str, str]) -> str:
    """Return the full dotted name of an expression; "" if it is none."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    parts.append(names.get(node.id, node.id))
    full = ".".join(reversed(parts))
    for long, short in _MODULE_ALIASES.items():
        if full.startswith(long + "."):
            full = short + full[len(long) :]
    return _OLD_NAMES.get(full, full)
