"""Services of a Compose file: each is one container, with variables and a command of its own.

Fields are those of the Compose Specification. Services with ``env_file`` or ``extends`` are left out: what
these would add is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from allaboard.facts import Material, Node, Origin, Value
from allaboard.formats.cli_flags import find_flags, words_after_program
from allaboard.formats.python_commands import TORCHRUN_MODULES
from allaboard.formats.shell.script import read_inner_commands

_EXTERNAL_FIELDS = frozenset(["env_file", "extends"])
_TRAINING_VARIABLES = frozenset(
    ["RANK", "WORLD_SIZE", "MASTER_ADDR", "TF_CONFIG", "NODE_RANK", "JAX_COORDINATOR_ADDRESS"]
)


def is_compose(tree: Node) -> bool:
    """Return True if the document has services, as a Compose file has, and is of no other kind."""
    services = tree.node_at("services")
    return services is not None and services.kind == "map" and "kind" not in tree.items


def training_services(tree: Node, file: str) -> Iterator[tuple[str, Material]]:
    """Yield the name and the configuration of each service that takes part in a training job."""
    services = tree.node_at("services")
    for name, node in services.items.items() if services is not None else ():
        if _EXTERNAL_FIELDS & node.items.keys():
            continue
        variables, opaque = _environment(node.node_at("environment"), file)
        commands = [
            c for field in ("entrypoint", "command") for c in _commands(node.node_at(field), file)
        ]
        if not _TRAINING_VARIABLES & variables.keys() and not _starts_node(commands):
            continue
        material = Material(
            kind="compose", file=file, variables=variables, opaque=opaque, commands=tuple(commands)
        )
        yield f"{file} {name}", material


def _starts_node(commands: Sequence[Sequence[Value]]) -> bool:
    """Return True if a command is torchrun's for one of several nodes that it numbers itself."""
    for command in commands:
        arguments = words_after_program(command, ("torchrun",), TORCHRUN_MODULES)
        flags = find_flags(arguments or (), frozenset(("nnodes", "node_rank")), frozenset())
        nodes = flags.values.get("nnodes")
        count = nodes.integer if nodes is not None else None
        if "node_rank" in flags.values and count is not None and count > 1:
            return True
    return False


def _environment(node: Node | None, file: str) -> tuple[dict[str, Value], frozenset[str]]:
    """Return the known variables, and the names of those that a shell or the host would fill in.

    The node is a map, or a list of ``NAME=value``.
    """
    pairs: list[tuple[str, str, Node]] = []
    if node is not None and node.kind == "map":
        pairs = [(n, "" if v.kind == "null" else v.text, v) for n, v in node.items.items()]
    elif node is not None:
        for entry in node.elements:
            name, equals, text = entry.text.partition("=")
            pairs.append((name, text if equals else "$", entry))
    variables: dict[str, Value] = {}
    for name, text, entry_node in pairs:
        if "$" not in text.replace("$$", ""):
            shift = entry_node.text.find("=") + 1 if entry_node.text != text else 0
            origin = Origin(
                variable=name, file=file, line=entry_node.line, column=entry_node.column + shift
            )
            variables[name] = Value(text.replace("$$", "$"), origin)
    return variables, frozenset(name for name, _, _ in pairs if name not in variables)


def _commands(node: Node | None, file: str) -> list[tuple[Value, ...]]:
    if node is None or node.kind in ("map", "null"):
        return []
    if node.kind == "list":
        words = [_value(e, file) for e in node.elements]
        inner_commands_found = [
            c for w in words if " " in w.text.strip() for c in read_inner_commands(w, file)
        ]
        return [tuple(words), *inner_commands_found]
    return read_inner_commands(_value(node, file), file)


def _value(node: Node, file: str) -> Value:
    return Value(node.text, Origin(file=file, line=node.line, column=node.column, parts=node.parts))
