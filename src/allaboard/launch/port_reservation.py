"""Free ports below the ephemeral range, held until the workers bind them."""

from __future__ import annotations

import random
import socket
from pathlib import Path

from allaboard.errors import AllaboardError

FIRST = 15000
"""Above what servers usually have for themselves."""


class NoFreePortError(AllaboardError, OSError):
    """Every port of the range is taken."""


def ephemeral_start() -> int:
    """Where the kernel begins to hand out ports by itself: ip_local_port_range, ip(7)."""
    try:
        text = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text()
    except OSError:
        return 32768
    return int(text.split()[0])


def reserve(count: int, first: int = FIRST, last: int | None = None) -> list[socket.socket]:
    """Binds ``count`` free ports of [first, last) on all addresses and returns their sockets.

    They are bound without listening and with SO_REUSEADDR: a framework, which sets it too, can bind
    and listen beside them, while another search for a free port passes them by.

    Raises NoFreePortError where the range does not hold so many.
    """
    if last is None:
        last = ephemeral_start()
        if last - first < count:
            first = 1024
    order = list(range(first, last))
    begin = random.randrange(len(order)) if order else 0
    held: list[socket.socket] = []
    for port in order[begin:] + order[:begin]:
        if len(held) == count:
            return held
        if (taken := _bind(port)) is not None:
            held.append(taken)
    if len(held) == count:
        return held
    for taken in held:
        taken.close()
    raise NoFreePortError(
        f"only {len(held)} free ports between {first} and {last - 1}, {count} are needed; "
        "see who holds them with: ss -ltnp"
    )


def _bind(port: int) -> socket.socket | None:
    probe = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        probe.bind(("0.0.0.0", port))  # without SO_REUSEADDR: refused where anybody has it
    except OSError:
        probe.close()
        return None
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return probe
