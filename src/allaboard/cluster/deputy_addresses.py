"""Finds the addresses at which a job's tasks or hosts meet while the first one has not started. Pure.

A TF_CONFIG lists the address of every task. The ranks of PyTorch and JAX know the first one's address alone,
but Slurm, LSF and PBS tell every task which hosts the job has. Their agents then listen at the first host's
port on each host, where they are anyway to tell strays the right address.

torchrun needs no such list: it starts no worker before all hosts have joined its own rendezvous.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from allaboard.analysis.roll_call.task_names import task_addresses
from allaboard.configuration.local_rank import is_local_rank_zero
from allaboard.configuration.resolve import resolve
from allaboard.facts import Address, Declared
from allaboard.facts.address import join_host_port

MIN_PLACES, MAX_PLACES = 3, 16
"""Of two the second one waits alone; in a large job everybody's looks at everybody would cost."""


class DeputyPlaces(NamedTuple):
    """Where the tasks or hosts of a job would be met."""

    own: int
    """Number of this one; never 0."""
    addresses: tuple[str, ...]
    """The address of each in the order of ranks; the first one is the meeting address."""
    may_lead: bool = True
    """False if another process of this host is to lead: the first one of its ranks has the port."""


def deputy_places(
    declared: Declared, meeting: str, environment: Mapping[str, str], host: str
) -> DeputyPlaces | None:
    """Return where the others would be met; None if that is not known, or if there are too few or too many.

    Args:
        declared: what the member of this host passed to its init.
        meeting: the address where the first member is expected.
        environment: the member's.
        host: name of this host.
    """
    if declared.cluster:
        addresses, own = task_addresses(declared), declared.rank
        is_known = 0 < own < len(addresses) and addresses[0] == meeting
        places = DeputyPlaces(own, addresses) if is_known else None
    else:
        places = _host_places(declared, meeting, environment, host)
    return (
        places if places is not None and MIN_PLACES <= len(places.addresses) <= MAX_PLACES else None
    )


def _host_places(
    declared: Declared, meeting: str, environment: Mapping[str, str], host: str
) -> DeputyPlaces | None:
    machines = resolve(dict(environment)).machines
    names = list(dict.fromkeys(m.name.text for m in machines))
    own_names = {_short(n) for n in (host, environment.get("SLURMD_NODENAME", "")) if n}
    own = next((i for i, name in enumerate(names) if _short(name) in own_names), 0)
    meeting_host, port = Address.from_endpoint(meeting).host, Address.from_endpoint(meeting).number
    # Rank 0 is on the first host of the list, whatever name or address of it the job uses.
    is_elsewhere = _short(meeting_host) in {_short(name) for name in names[1:]}
    if declared.rank <= 0 or own == 0 or not port or is_elsewhere:
        return None
    addresses = (meeting, *(join_host_port(name, port) for name in names[1:]))
    return DeputyPlaces(own, addresses, is_local_rank_zero(dict(environment)))


def _short(name: str) -> str:
    """Return a host's name without its domain; an address as it is."""
    return name if name.replace(".", "").isdecimal() or ":" in name else name.partition(".")[0]
