"""Free ports below the ephemeral range, held until the workers bind them."""

from __future__ import annotations

import os
import socket
from itertools import chain
from pathlib import Path

from allaboard.errors import AllaboardError

FIRST_PORT = 15000
"""Lowest port that is reserved: above those that servers usually have."""


class NoFreePortError(AllaboardError, OSError):
    """Every port of the range is taken."""


def ephemeral_start() -> int:
    """Return where the kernel begins to hand out ports by itself: ip_local_port_range, ip(7)."""
    try:
        text = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text()
    except OSError:
        return 32768
    return int(text.split()[0])


def reserve_ports(
    count: int, first_port: int = FIRST_PORT, end_port: int | None = None
) -> list[socket.socket]:
    """Bind ``count`` free ports of [first_port, end_port) on all addresses and return their
    sockets.

    They are bound without listening and with SO_REUSEADDR: a framework, which sets it too, can bind
    and listen beside them, while another search for a free port passes them by. Raises
    NoFreePortError if the range does not hold so many.
    """
    if end_port is None:
        end_port = ephemeral_start()
        if end_port - first_port < count:
            first_port = 1024
    count_all = max(1, end_port - first_port)
    begin = first_port + int.from_bytes(os.urandom(4)) % count_all
    reserved: list[socket.socket] = []
    for port in chain(range(begin, end_port), range(first_port, begin)):
        if len(reserved) == count:
            return reserved
        if (taken := _bind(port)) is not None:
            reserved.append(taken)
    if len(reserved) == count:
        return reserved
    for taken in reserved:
        taken.close()
    raise NoFreePortError(
        f"only {len(reserved)} free ports between {first_port} and {end_port - 1}, {count} are needed; "
        "see who holds them with: ss -ltnp"
    )


def _bind(port: int) -> socket.socket | None:
    probe = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        probe.bind(("0.0.0.0", port))  # without SO_REUSEADDR: refused where anybody has it
    except OSError:
        probe.close()
        return None
    # After the bind: before it, two searches could be given one port.
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return probe
