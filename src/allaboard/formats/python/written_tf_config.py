"""The TF_CONFIG that a script writes itself, as far as its text shows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from allaboard.formats.python.constants import top_level_constants
from allaboard.formats.python.environment_writes import environment_writes
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Script
from allaboard.formats.python.text_positions import ScriptPositions

Entries = dict[str, tuple[ast.expr, ast.expr]]
"""The entries of a dict in a script by key: the key's node and the value's."""


@dataclass(frozen=True)
class WrittenTfConfig:
    """One assignment of TF_CONFIG from a dict."""

    statement: ast.expr | ast.stmt
    """The assignment, or the call that sets it."""
    entries: Entries
    """All entries of the dict."""
    is_literal: bool
    """True if the whole value is literal: the rules on TF_CONFIG judge it then."""
    text: str
    """The dict as the script writes it, or its name."""


def written_tf_configs(script: Script) -> Iterator[WrittenTfConfig]:
    """Yield each TF_CONFIG that the script sets from a dict whose keys are all known."""
    for write in environment_writes(script, "TF_CONFIG"):
        value = resolve(script, write.value, into_functions=True)
        if not isinstance(value, ast.Call):
            continue
        argument = value.args[0] if value.args else None
        if argument is None or not ast.unparse(value.func).endswith("dumps"):
            continue
        entries = dict_entries(script, argument)
        if entries is not None:
            yield WrittenTfConfig(
                write.node, entries, _is_literal(script, argument), ast.unparse(argument)
            )


def dict_entries(script: Script, node: ast.expr) -> Entries | None:
    """Return the entries of a dict that is written out, and not changed later; None for any other."""
    name = node.id if isinstance(node, ast.Name) else ""
    node = resolve(script, node)
    if not isinstance(node, ast.Dict) or (name and _is_changed(script, name)):
        return None
    entries: Entries = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            return None
        entries[key.value] = key, value
    return entries


def _is_changed(script: Script, name: str) -> bool:
    """Return True if the script adds to a dict, or takes from it, or hands it to something that may."""
    for node in script.parents:
        if not isinstance(node, ast.Name) or node.id != name or not isinstance(node.ctx, ast.Load):
            continue
        parent = script.parents.get(node)
        if isinstance(parent, ast.Subscript) and not isinstance(parent.ctx, ast.Load):
            return True
        if isinstance(parent, ast.Subscript) and isinstance(
            script.parents.get(parent), ast.Subscript
        ):
            return True  # config["cluster"]["worker"] = ...
        if isinstance(parent, ast.Attribute):
            return True  # config.update(...)
        if isinstance(parent, ast.Call) and node in parent.args:
            called = ast.unparse(parent.func).rpartition(".")[2]
            if called not in ("dumps", "print", "info", "debug", "len", "str"):
                return True
    return False


def _is_literal(script: Script, node: ast.expr) -> bool:
    positions = ScriptPositions("\n".join(script.lines), script.file)
    constants = {**script.imported, **top_level_constants(script.tree)}
    try:
        positions.to_json(node, constants)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return False
    return True
