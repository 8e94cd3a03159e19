"""Ports for servers that a test starts later: outside the range that the kernel hands out by itself."""

from __future__ import annotations

from allaboard.launch.port_reservation import reserve_ports


def free_port() -> int:
    """Return a port that nobody has, and that no connection or listener on port 0 gets meanwhile.

    One of the kernel's own choice, given back, may belong to anybody's next connection.
    """
    (held,) = reserve_ports(1)
    with held:
        return int(held.getsockname()[1])
