"""Finds where the agents of a job meet: at the framework's own address, or at one that is posted there."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping

from allaboard.cluster.transport.rendezvous_store import (
    AddressStore,
    FileAddressStore,
    TcpAddressStore,
)
from allaboard.configuration.launcher_context import LauncherContext, master_address
from allaboard.facts import Address, Declared

MAX_POST_AGE_S = 3600.0
"""Seconds before this agent's start; an address that was posted earlier belongs to an earlier run."""


def launcher_store(
    launcher_info: LauncherContext, environment: Mapping[str, str], coordinator: str
) -> TcpAddressStore | None:
    """Return the store that torchrun keeps, or None if the job meets elsewhere."""
    address = master_address(environment)
    if (
        not launcher_info.has_launcher_store
        or not address
        or launcher_info.rank < 0
        or launcher_info.address
        or coordinator
    ):
        return None
    return (
        None
        if "JAX_COORDINATOR_ADDRESS" in environment
        else TcpAddressStore(address, launcher_info.job_id)
    )


def posted_endpoint(
    declared: Declared,
    launcher_info: LauncherContext,
    environment: Mapping[str, str],
    agent_started_at: float,
) -> AddressStore | None:
    """Return the store where the leader's address is posted; None if the agents meet at the rendezvous
    itself.

    ``agent_started_at`` is in seconds since the epoch.
    """
    if declared.place.startswith("file://"):
        path = declared.place.removeprefix("file://")
        return FileAddressStore(path, launcher_info.job_id, agent_started_at - MAX_POST_AGE_S)
    if launcher_info.has_launcher_store and _same_address(
        declared.place, f"tcp://{master_address(environment)}"
    ):
        return TcpAddressStore(declared.place.removeprefix("tcp://"), launcher_info.job_id)
    return None


def meeting_address(declared: Declared) -> str:
    """Return the ``host:port`` that the framework itself will use; "" for a file."""
    if declared.cluster:
        order = [f"{j}:0" for j in ("chief", "master", "worker")]
        return next((declared.cluster[t] for t in order if t in declared.cluster), "")
    scheme, _, remainder = declared.place.partition("://")
    return remainder.partition("/")[0] if scheme == "tcp" else ""


def endpoint_port(address: str) -> int:
    """Return the port of ``host:port``; 0 if there is none."""
    return Address.from_endpoint(address).number


def listening_port(declared: Declared, address: str) -> int:
    """Return the port on which rank 0 will listen: JAX may be given another one than that of the address."""
    return endpoint_port(declared.bind) or endpoint_port(address)


def _same_address(address: str, other_address: str) -> bool:
    """Return True if two addresses are equal but for the brackets of an IPv6 address."""
    bare = str.maketrans("", "", "[]")
    return address.translate(bare) == other_address.translate(bare)


async def is_local_address(address: str) -> bool:
    """Return True if the address belongs to this host: if one of the addresses of its name can be bound.

    One is enough: a name may also have an IPv6 address on a host where IPv6 is switched off.
    """
    try:
        host, _ = Address.from_endpoint(address).endpoint
        loop = asyncio.get_running_loop()
        addresses = await loop.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    except (OSError, ValueError):  # UnicodeError is one
        return False
    return any(_can_bind(family, sockaddr) for family, _, _, _, sockaddr in addresses)


def _can_bind(family: int, sockaddr: object) -> bool:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind(sockaddr)  # type: ignore[arg-type]  # any family's address
    except OSError:
        return False
    return True
