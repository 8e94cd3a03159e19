"""Choices that a conversion needs and a source leaves out, taken from its other values or from the user."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from allaboard.configuration.spec.spec_members import count_hosts
from allaboard.facts import ClusterSpec, Machine, Origin, PartialSpec, Value
from allaboard.facts.address import parse_address

_HERE = "127.0.0.1"


def complete_for_writer(
    spec: ClusterSpec, port: int = 0, hosts: Sequence[str] = (), parts: Sequence[PartialSpec] = ()
) -> ClusterSpec:
    """Return the spec with what its values imply, ready for a writer.

    Args:
        spec: as it was merged.
        port: the first port on hosts that name none; 0 keeps what is there.
        hosts: the hosts in order, where the configuration does not list them; empty to keep them.
        parts: what the sources said; a value that one leaves to the run is taken from another.
    """
    values = dict(spec.values)
    for name in [n for n, v in values.items() if not v.text]:
        stated = (p.values[name] for p in parts if name in p.values and p.values[name].text)
        values[name] = next(stated, values[name])
    if port:
        values["master_port"] = Value(str(port), Origin(flag="--port"))
    where = values.get("coordinator") or values.get("rdzv_endpoint")
    if "master_addr" not in values and where is not None and where.text:
        address = parse_address(where.text)
        values["master_addr"] = Value(address.host, where.origin)
        if address.port:
            values.setdefault("master_port", Value(address.port, where.origin))
    spec = msgspec.structs.replace(spec, values=values)
    each = _each(spec, hosts)
    if hosts:
        named = [Value(host, Origin(flag="--hosts")) for host in hosts]
        listed = tuple(Machine(name, each) for name in named)
        return msgspec.structs.replace(spec, cluster={}, machines=listed)
    if spec.cluster:
        return spec
    if spec.machines:
        # A launcher's own count is in force: Slurm counts the launchers, not their processes.
        listed = tuple(Machine(m.name, each or m.slots) for m in spec.machines)
        return msgspec.structs.replace(spec, machines=listed)
    if each and _one_host(spec):
        return msgspec.structs.replace(spec, machines=(Machine(Value(_HERE), each),))
    return spec


def _each(spec: ClusterSpec, hosts: Sequence[str]) -> int:
    """Return the processes on a host as the launcher or the counts of the members tell; 0 if they do not."""
    stated_count = spec.number("nproc_per_node")
    if stated_count:
        return stated_count
    size, local = spec.number("world_size"), spec.number("local_world_size")
    if local:
        return local
    count = len(hosts) or len(spec.machines) or count_hosts(spec)
    if spec.machines and not hosts and size == sum(m.slots for m in spec.machines):
        return 0
    return size // count if size and count and size % count == 0 else 0


def _one_host(spec: ClusterSpec) -> bool:
    nodes = spec.values.get("nnodes")
    if "rank" in spec.values:
        return False  # one member's view: its writer needs no list
    return "standalone" in spec.values or nodes is None or nodes.text.strip() == "1"
