"""Services of a Compose file that are members of one job and cannot meet, or are one member several times.

Each service has a network namespace of its own unless `network_mode` says otherwise, and all containers of a
service get the same variables (Compose Specification: `network_mode`, `deploy.replicas`, `scale`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from allaboard.facts import Material, Node, Origin, Problem, Value, whole_number
from allaboard.facts.address import is_this_host_alone, parse_address
from allaboard.formats.cli_flags import words_after_program

_MEETING_VARIABLES = ("MASTER_ADDR", "JAX_COORDINATOR_ADDRESS")
_ADDRESS = re.compile(r'"([\w.\-\[\]:]+:\d+)"')
_PLAIN_NAME = re.compile(r"[A-Za-z][\w-]*")
"""Matches a name of one word, which only Docker could know; one with dots, a name server may."""
_NAMES = re.compile(r"[\w-]+")
_RANKS = ("RANK", "JAX_PROCESS_ID", "NODE_RANK")
_LAUNCHERS = ("torchrun", "accelerate", "deepspeed", "mpirun")


def compose_problems(
    services: Node | None, members: dict[str, Material], joins_others: bool = False
) -> Iterator[Problem]:
    """Yield the problems of the services with these names, which take part in a job.

    ``joins_others`` is True if a network of theirs may have containers that the file does not start.
    """
    several = sum(any(n in m.variables for n in _RANKS) for m in members.values()) > 1
    for name, material in members.items():
        node = services.items.get(name) if services is not None else None
        if node is None:
            continue
        yield from _copies(name, node, material)
        if several and node.node_at("network_mode") is None:
            yield from _loopback(name, material)
    yield from _clusters(services, members)
    named = several or sum("TF_CONFIG" in m.variables for m in members.values()) > 1
    if services is not None and named and not joins_others:
        yield from _unknown_name(services, members)


def _unknown_name(services: Node, members: dict[str, Material]) -> Iterator[Problem]:
    """Report the name of a meeting place that no container of the file has."""
    names = set(services.items)
    for node in services.items.values():
        for key in ("container_name", "hostname"):
            named = node.node_at(key)
            names |= {named.text} if named is not None else set()
        if any(
            node.node_at(k) is not None for k in ("network_mode", "extra_hosts", "external_links")
        ):
            return  # names of the host, or of other containers
        names |= set(_NAMES.findall(" ".join(_texts(node.node_at("networks")))))
        names |= set(_NAMES.findall(" ".join(_texts(node.node_at("links")))))
    for material in members.values():
        config = material.variables.get("TF_CONFIG")
        hosts = [parse_address(a).host for a in _ADDRESS.findall(config.text)] if config else []
        unknown = [h for h in hosts if _PLAIN_NAME.fullmatch(h) and h not in names]
        if config is not None and unknown and not any(map(is_this_host_alone, unknown)):
            yield _problem(
                f"{unknown[0]} is in the cluster of TF_CONFIG, and no service of this file has that name: "
                "the tasks do not find each other",
                f"TF_CONFIG, services: {', '.join(list(services.items)[:6])}",
                f'"{next(iter(members))}:2222"   # the name of its service for each task',
                config,
            )
            return
        value = material.variables.get("MASTER_ADDR")
        host = value.text if value is not None else ""
        if value is None or not _PLAIN_NAME.fullmatch(host) or is_this_host_alone(host):
            continue
        if host not in names:
            yield _problem(
                f"MASTER_ADDR is {host}, and no service of this file has that name: the ranks do not find "
                "rank 0",
                f"MASTER_ADDR={host}, services: {', '.join(list(services.items)[:6])}",
                f"MASTER_ADDR: {_first_rank(members) or 'SERVICE-OF-RANK-0'}",
                value,
            )
            return


def _first_rank(members: dict[str, Material]) -> str:
    """Return the name of the service of rank 0; "" if none says so."""
    for name, material in members.items():
        if any(n in material.variables and material.variables[n].integer == 0 for n in _RANKS):
            return name
    return ""


def _texts(node: Node | None) -> Iterator[str]:
    """Yield all texts in a part of the file."""
    if node is None:
        return
    if node.text:
        yield node.text
    for child in (*node.items.values(), *node.elements):
        yield from _texts(child)


def _loopback(name: str, material: Material) -> Iterator[Problem]:
    """Report a member other than the first that looks for the first one in its own container."""
    rank = next((material.variables[n] for n in _RANKS if n in material.variables), None)
    if rank is None or rank.integer in (None, 0):
        return
    for variable in _MEETING_VARIABLES:
        value = material.variables.get(variable)
        if value is None or not is_this_host_alone(parse_address(value.text).host):
            continue
        port = parse_address(value.text).port
        right = "SERVICE-OF-RANK-0" + (f":{port}" if port else "")
        yield _problem(
            f"{variable} is {value.text}, which is the container of {name} itself: rank {rank.text} waits "
            "for rank 0 in its own container",
            f"{variable}={value.text}, {rank.origin.variable}={rank.text}",
            f"{variable}: {right}   # the name of that service",
            value,
        )
        return


def _clusters(services: Node | None, members: dict[str, Material]) -> Iterator[Problem]:
    """Report TF_CONFIGs of several services in which all tasks have loopback addresses."""
    loopback_configs: dict[str, Value] = {}
    for name, material in members.items():
        value = material.variables.get("TF_CONFIG")
        node = services.items.get(name) if services is not None else None
        if value is None or node is None or node.node_at("network_mode") is not None:
            continue
        hosts = {parse_address(a).host for a in _ADDRESS.findall(value.text)}
        if hosts and all(map(is_this_host_alone, hosts)):
            loopback_configs[name] = value
    if len(loopback_configs) < 2:
        return
    name, value = next(iter(loopback_configs.items()))
    yield _problem(
        f"the cluster has loopback addresses only, and its tasks are in {len(loopback_configs)} containers: "
        "each waits for the others in its own",
        f"TF_CONFIG of {', '.join(loopback_configs)}",
        f'"{name}:2222"   # the name of its service for each task',
        value,
    )


def _copies(name: str, node: Node, material: Material) -> Iterator[Problem]:
    """Report a service that is started several times, and is the same member each time."""
    replicas = node.node_at("deploy", "replicas") or node.node_at("scale")
    count = whole_number(replicas.text) if replicas is not None else None
    if replicas is None or count is None or count < 2:
        return
    identity = next((material.variables[n] for n in _RANKS if n in material.variables), None)
    launched = any(words_after_program(c, _LAUNCHERS) is not None for c in material.commands)
    if identity is None or launched:
        yield from _shared_address(name, count, material)
        return
    variable = identity.origin.variable
    yield _problem(
        f"all {count} containers of {name} get {variable}={identity.text}: all of them are the same member",
        f"{variable}={identity.text}, replicas: {count}",
        f"a service for each rank, with {variable} 0 to {count - 1}",
        Value(identity.text, identity.origin),
    )


def _shared_address(name: str, count: int, material: Material) -> Iterator[Problem]:
    """Report copies that look for rank 0 under the name that all of them have."""
    address = material.variables.get("MASTER_ADDR")
    if address is not None and address.text == name:
        yield _problem(
            f"MASTER_ADDR is {name}, which is the name of all {count} containers of this service: they find "
            "any of them there, and not that of rank 0",
            f"MASTER_ADDR={name}, replicas: {count}",
            "a service of its own for rank 0, with its name as MASTER_ADDR",
            address,
        )


def _problem(message: str, observed: str, correction: str, value: Value) -> Problem:
    origin: Origin = value.origin
    return Problem(
        kind="compose", message=message, observed=observed, correction=correction, origin=origin
    )
