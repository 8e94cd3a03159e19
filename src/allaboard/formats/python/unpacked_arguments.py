"""Arguments that a script unpacks into a call from a dict that it writes out: ``Loader(data, **options)``."""

from __future__ import annotations

import ast

from allaboard.formats.python.rank_dataflow import RankDataflow


def expand_unpacked_arguments(tree: ast.Module, dataflow: RankDataflow) -> None:
    """Write such arguments into the calls of the tree, as if they stood there by their names."""
    changed = None
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or all(k.arg is not None for k in node.keywords):
            continue
        if changed is None:
            changed = changed_names(tree)
        keywords: list[ast.keyword] = []
        for keyword in node.keywords:
            entries = _entries(keyword, dataflow, changed) if keyword.arg is None else None
            keywords += [keyword] if entries is None else entries
        node.keywords = keywords


def _entries(
    unpacked: ast.keyword, dataflow: RankDataflow, changed: frozenset[str]
) -> list[ast.keyword] | None:
    value: ast.expr | None = unpacked.value
    if isinstance(value, (ast.Name, ast.Attribute)):
        if ast.unparse(value) in changed:
            return None
        value = dataflow.sole_value(value)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dict":
        is_plain = not value.args and all(k.arg is not None for k in value.keywords)
        return list(value.keywords) if is_plain else None
    if not isinstance(value, ast.Dict):
        return None
    keys = [k.value if isinstance(k, ast.Constant) else None for k in value.keys]
    if not all(isinstance(key, str) and key.isidentifier() for key in keys):
        return None
    return [
        ast.keyword(arg=str(key), value=entry, lineno=entry.lineno, col_offset=entry.col_offset)
        for key, entry in zip(keys, value.values, strict=True)
    ]


def changed_names(tree: ast.Module) -> frozenset[str]:
    """Return the names of the objects that the script adds to, or calls a method of."""
    return frozenset(
        ast.unparse(node.value)
        for node in ast.walk(tree)
        if (isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.Attribute) and isinstance(node.value, (ast.Name, ast.Attribute)))
    )
