"""The TCP connections of processes with what the kernel counts of them: sock_diag(7), TCP_INFO.

Of ``struct tcp_info``: tcpi_rtt stands at 68, tcpi_min_rtt at 148 (Linux 4.6), tcpi_delivery_rate at 160
(4.9), tcpi_busy_time at 168 (4.10).
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable

from allaboard.facts import Flow
from allaboard.hosts import proc
from allaboard.hosts.sock_diag import Connection, established
from allaboard.hosts.socket_bytes import BYTES, BYTES_AT

MICROSECONDS, LONG_MICROSECONDS = struct.Struct("=I"), struct.Struct("=Q")
RTT_AT, LEAST_AT, DELIVERS_AT, BUSY_AT = 68, 148, 160, 168
NEVER = 0xFFFFFFFF
MICRO = 1e-6


def flows(pids: Iterable[int]) -> dict[int, tuple[Flow, ...]]:
    """The established connections of each of these processes; none of one that is gone, or another user's.
    Every process must be in this network namespace. Raises OSError where the kernel does not tell."""
    owners = {inode: pid for pid in pids for inode in proc.socket_inodes(pid)}
    found: dict[int, list[Flow]] = defaultdict(list)
    for one in established() if owners else ():
        pid = owners.get(one.inode)
        if pid is not None and one.info:
            found[pid].append(_flow(one))
    return {pid: tuple(many) for pid, many in found.items()}


def _flow(one: Connection) -> Flow:
    sent, received = one.read(BYTES, BYTES_AT)
    (rtt,), (least,) = one.read(MICROSECONDS, RTT_AT), one.read(MICROSECONDS, LEAST_AT)
    return Flow(
        local=_end(one.local),
        remote=_end(one.remote),
        received=received,
        sent=sent,
        unread=one.unread,
        unsent=one.unsent,
        rtt=rtt * MICRO,
        least=least * MICRO if least != NEVER else 0.0,
        busy=one.read(LONG_MICROSECONDS, BUSY_AT)[0] * MICRO,
        delivers=float(one.read(LONG_MICROSECONDS, DELIVERS_AT)[0]),
    )


def _end(where: tuple[str, int]) -> str:
    """``127.0.0.1:21000``; TensorFlow's sockets are of IPv6 and hold IPv4 addresses mapped into it."""
    address, port = where
    return f"{address.removeprefix('::ffff:')}:{port}"
