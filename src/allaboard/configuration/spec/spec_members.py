"""The member that reads a spec, and the hosts of its members."""

from __future__ import annotations

from allaboard.facts import Machine, Origin, PartialSpec, Value, Who
from allaboard.facts.address import is_this_host_alone, parse_address

_MAX_HOSTS = 100_000
"""Hosts of one list that are read."""


def own_member(spec: PartialSpec) -> tuple[Who, ...]:
    """Return the member that the spec speaks to; empty if it does not say."""
    index = spec.index.integer if spec.index is not None else None
    rank = spec.number("rank")
    if spec.job is not None and index is not None:
        return (Who(job=spec.job.text, index=index),)
    if rank is not None:
        return (Who(index=max(rank, 0), rank=rank),)
    return ()


def count_hosts(spec: PartialSpec) -> int:
    """Return how many hosts the spec surely means; 0 if it does not say.

    Tasks of one cluster that are all at loopback addresses are on one host.
    """
    if spec.cluster:
        names = {parse_address(value.text).host.lower() for _, _, value in spec.tasks()}
        loopback_names = {name for name in names if is_this_host_alone(name)}
        return len(names - loopback_names) + (1 if loopback_names else 0)
    nodes = spec.values.get("nnodes")
    if nodes is not None:
        fewest = nodes.text.partition(":")[0].strip()
        return int(fewest) if fewest.isascii() and fewest.isdecimal() else 0
    if spec.machines:
        return len({m.name.text for m in spec.machines})
    size, local = spec.number("world_size"), spec.number("local_world_size")
    if size and local:
        return -(-size // local)
    return 0


def machines_of_lines(value: Value | None) -> tuple[Machine, ...]:
    """Return the hosts of a variable that lists one a line; how many ranks each takes is not said."""
    if value is None:
        return ()
    hosts_listed = (line.strip() for line in value.text.split("\n")[:_MAX_HOSTS])
    return tuple(
        Machine(
            Value(
                host,
                Origin(variable=value.origin.variable, key=f"[{number}]", file=value.origin.file),
            )
        )
        for number, host in enumerate(h for h in hosts_listed if h)
    )
