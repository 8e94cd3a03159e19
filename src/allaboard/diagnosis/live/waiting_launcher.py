"""A launcher that has started no rank yet, since it waits for those of the other nodes. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from allaboard.facts import Present
from allaboard.formats.dumps.process_roles import TORCHRUN, process_role

_RENDEZVOUS = "torch/distributed/elastic/"
_WAITS_IN = "next_rendezvous"
_ENDPOINTS = ("rdzv-endpoint", "rdzv_endpoint")


def describe_waiting_launcher(process: Present) -> str:
    """Return for whom a torchrun waits in its rendezvous, and what to do; "" for any other process."""
    stack = process.member.stack
    if stack is None or not any(
        f.function == _WAITS_IN and _RENDEZVOUS in f.file for f in stack.frames
    ):
        return ""
    options = _options(process.command)
    nodes = options.get("nnodes", "")
    endpoint = next((options[name] for name in _ENDPOINTS if name in options), "")
    if not endpoint and (address := options.get("master_addr") or options.get("master-addr")):
        port = options.get("master_port") or options.get("master-port") or "29500"
        endpoint = f"{address}:{port}"
    given = " ".join([f"--nnodes {nodes}"] * bool(nodes) + [f"at {endpoint}"] * bool(endpoint))
    return (
        f"torchrun waits in its rendezvous for its other nodes{f' ({given})' if given else ''}, and has "
        "started no rank yet; start torchrun on each of them with the same --nnodes and rendezvous, or look "
        f"at one that runs there: it must reach {endpoint or 'the same endpoint'}"
    )


def without_launchers_number(process: Present) -> Present:
    """Return the process without a rank, if it is torchrun: the number of its node is no rank."""
    command = " ".join(process.command)
    frames = process.member.stack.frames if process.member.stack is not None else ()
    if process_role(command, frames) != TORCHRUN:
        return process
    who = msgspec.structs.replace(process.member.who, rank=-1, index=-1)
    member = msgspec.structs.replace(process.member, who=who)
    return msgspec.structs.replace(process, member=member, arguments={})


def _options(command: Sequence[str]) -> dict[str, str]:
    """Return the options of a command line by name, as ``--name value`` or ``--name=value``."""
    options: dict[str, str] = {}
    for number, argument in enumerate(command):
        if argument.startswith("--"):
            name, sign, value = argument[2:].partition("=")
            following = command[number + 1] if number + 1 < len(command) else ""
            options.setdefault(name, value if sign else following)
    return options
