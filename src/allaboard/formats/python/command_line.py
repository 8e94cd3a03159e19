"""The options of a script's command line, with their defaults: argparse, absl's flags and click."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import lru_cache

from allaboard.formats.python.script_ast import Script, call_argument

_HOLDERS = re.compile(
    r"(?:\w*_)?(?:args?|opts?|options?|flags|cfg|conf|config|h?params|parsed|namespace)", re.I
)
"""Names under which scripts keep what their command line says."""
_PARSERS = ("parse_args", "parse_known_args", "parse_intermixed_args")


@dataclass(frozen=True)
class Option:
    """One option of the command line."""

    flags: tuple[str, ...]
    """Its spellings, as ``--dist-url``."""
    default: ast.expr | None
    """Its value if the command line does not have it; None if it must, or has no default."""
    call: ast.Call
    """The call that declares it."""


def option_of(script: Script, node: ast.expr | None) -> Option | None:
    """Return the option whose value an expression is (``args.rank``), if nothing else sets that."""
    if isinstance(node, ast.Subscript):
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return _options(script).get(key) if isinstance(key, str) and _holds(script, node) else None
    if isinstance(node, ast.Name):
        return _click_option(script, node)
    if not isinstance(node, ast.Attribute) or node.attr in _set_attributes(script):
        return None
    return _options(script).get(node.attr) if _holds(script, node) else None


def _holds(script: Script, node: ast.Attribute | ast.Subscript) -> bool:
    """Return True if what stands before the dot holds the parsed command line."""
    holder = node.value
    if not isinstance(holder, (ast.Name, ast.Attribute)):
        return False
    holder_name = holder.attr if isinstance(holder, ast.Attribute) else holder.id
    if _HOLDERS.fullmatch(holder_name):
        return True
    values = script.ranks.bound_values(holder)
    return any(
        isinstance(v, ast.Call) and isinstance(v.func, ast.Attribute) and v.func.attr in _PARSERS
        for v in values
    )


@lru_cache(maxsize=4)
def _options(script: Script) -> dict[str, Option]:
    """Return the options by the names of their values; one that is declared twice is left out."""
    options: dict[str, Option] = {}
    twice: set[str] = set()
    for name, call in script.calls:
        short = name.rpartition(".")[2]
        if short == "add_argument":
            option, destination = _argparse_option(call)
        elif short.startswith("DEFINE_"):
            option, destination = _absl_option(call)
        else:
            continue
        if option is None or not destination:
            continue
        if destination in options:
            twice.add(destination)
        options[destination] = option
    return {d: o for d, o in options.items() if d not in twice}


def _argparse_option(call: ast.Call) -> tuple[Option | None, str]:
    flags = tuple(
        a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)
    )
    if not flags:
        return None, ""
    stated = call_argument(call, "dest")
    long = next((f for f in flags if f.startswith("--")), flags[0])
    destination = (
        str(stated.value)
        if isinstance(stated, ast.Constant)
        else long.lstrip("-").replace("-", "_")
    )
    required = call_argument(call, "required")
    is_required = isinstance(required, ast.Constant) and required.value is True
    return Option(flags, None if is_required else call_argument(call, "default"), call), destination


def _absl_option(call: ast.Call) -> tuple[Option | None, str]:
    name = call_argument(call, "name", 0)
    if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
        return None, ""
    return Option((f"--{name.value}",), call_argument(call, "default", 1), call), name.value


def _click_option(script: Script, node: ast.Name) -> Option | None:
    """Return the option of ``@click.option`` that a parameter of the decorated function is."""
    function = script.ranks.parameter_scope(node)
    for decorator in function.decorator_list if function is not None else ():
        if not isinstance(decorator, ast.Call):
            continue
        if not script.call_name(decorator.func).startswith("click."):
            continue
        option, destination = _argparse_option(decorator)
        if destination == node.id:
            return option
    return None


@lru_cache(maxsize=4)
def _set_attributes(script: Script) -> frozenset[str]:
    """Return the names of the attributes that the script sets: their options say little of them."""
    return frozenset(
        node.attr
        for node in script.parents
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    )


def refuses_unknown_options(script: Script, parser: ast.Call) -> bool:
    """Return True if a parser of argparse certainly ends the program at a ``--local_rank``."""
    parent = script.parents.get(parser)
    if not isinstance(parent, ast.Assign) or any(k.arg == "parents" for k in parser.keywords):
        return False
    name, source = ast.unparse(parent.targets[0]), "\n".join(script.lines)
    if _LENIENT.search(source) or source.count("ArgumentParser(") != 1:
        return False
    parses = False
    for _, call in script.calls:
        owner, _, method = ast.unparse(call.func).rpartition(".")
        if method == "parse_args" and owner == name:
            parses = not call.args and not call.keywords
        if method == "add_argument" and not all(isinstance(a, ast.Constant) for a in call.args):
            return False  # a flag that only a run could tell
        passed = [*call.args, *(k.value for k in call.keywords)]
        if any(ast.unparse(a) == name for a in passed) and method != "add_config_arguments":
            return False  # another function adds flags to it
    return parses


_LENIENT = re.compile(
    r"local[-_]rank['\"]|parse_known_args|REMAINDER|add_subparsers|deepspeed_args"
)
"""Matches scripts that take a `--local_rank`, or whatever comes."""
