"""Where an agent can be reached by another one, which may know it by another address than itself does."""

from __future__ import annotations

from allaboard.facts import Address
from allaboard.facts.address import join_host_port

UNUSABLE_HOSTS = ("0.0.0.0", "::", "")
"""Hosts of an address that lead nowhere: its owner does not know by which address others reach it."""


def reachable_address(address: str, met_host: str) -> str:
    """Return an agent's address as this host can use it.

    ``met_host`` is the numeric address over which this host was connected to it: that counts where the agent
    knows itself by a loopback address only.
    """
    parsed = Address.from_endpoint(address)
    is_own_only = parsed.host in UNUSABLE_HOSTS or parsed.host.startswith("127.")
    return join_host_port(met_host, parsed.number) if is_own_only and met_host else address
