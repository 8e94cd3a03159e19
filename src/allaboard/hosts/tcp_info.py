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
from allaboard.hosts.sock_diag import DiagConnection, established_connections
from allaboard.hosts.socket_bytes import BYTES, BYTES_AT

MICROSECONDS, LONG_MICROSECONDS = struct.Struct("=I"), struct.Struct("=Q")
RTT_AT, MIN_RTT_AT, DELIVERY_RATE_AT, BUSY_AT = 68, 148, 160, 168
NEVER = 0xFFFFFFFF
MICRO = 1e-6


def tcp_flows(pids: Iterable[int]) -> dict[int, tuple[Flow, ...]]:
    """Return the established connections of each of these processes; none for one that has gone or
    is another user's.

    Every process must be in this network namespace. Raises OSError if the kernel does not answer.
    """
    owners = {inode: pid for pid in pids for inode in proc.socket_inodes(pid)}
    flows_by_pid: dict[int, list[Flow]] = defaultdict(list)
    for connection in established_connections() if owners else ():
        pid = owners.get(connection.inode)
        if pid is not None and connection.info:
            flows_by_pid[pid].append(_flow(connection))
    return {pid: tuple(flows_of_pid) for pid, flows_of_pid in flows_by_pid.items()}


def _flow(connection: DiagConnection) -> Flow:
    sent, received = connection.read_info(BYTES, BYTES_AT)
    (rtt,), (least,) = (
        connection.read_info(MICROSECONDS, RTT_AT),
        connection.read_info(MICROSECONDS, MIN_RTT_AT),
    )
    return Flow(
        local=_end(connection.local),
        remote=_end(connection.remote),
        received=received,
        sent=sent,
        unread=connection.unread,
        unsent=connection.unsent,
        rtt=rtt * MICRO,
        least=least * MICRO if least != NEVER else 0.0,
        busy=connection.read_info(LONG_MICROSECONDS, BUSY_AT)[0] * MICRO,
        delivers=float(connection.read_info(LONG_MICROSECONDS, DELIVERY_RATE_AT)[0]),
    )


def _end(address_and_port: tuple[str, int]) -> str:
    """``127.0.0.1:21000``; TensorFlow's sockets are of IPv6 and hold IPv4 addresses mapped into it."""
    address, port = address_and_port
    return f"{address.removeprefix('::ffff:')}:{port}"
