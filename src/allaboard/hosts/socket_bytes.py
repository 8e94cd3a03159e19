"""Bytes and segments that went through the TCP sockets of a process, as the kernel counts them per
connection.

tcpi_bytes_acked stands at 120 of ``struct tcp_info`` and tcpi_bytes_received at 128 (Linux 4.1),
tcpi_segs_in at 140 (4.2). tcpi_last_data_sent stands at 44 and tcpi_last_data_recv at 52: milliseconds.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from allaboard.hosts import proc
from allaboard.hosts.sock_diag import established_connections

BYTES = struct.Struct("=QQ")
BYTES_AT = 120
COUNT = struct.Struct("=I")
SEGMENTS_AT = 140
LAST_DATA_SENT_AT, LAST_DATA_RECEIVED_AT = 44, 52


def socket_bytes(pids: Iterable[int]) -> int:
    """Return the bytes acknowledged and received so far over the open connections of these
    processes; 0 if they cannot be seen. The number falls when a connection is closed."""
    inodes = {inode for pid in pids for inode in proc.socket_inodes(pid)}
    if not inodes:
        return 0
    try:
        return sum(
            sum(connection.read_info(BYTES, BYTES_AT))
            for connection in established_connections()
            if connection.inode in inodes
        )
    except (OSError, struct.error):
        return 0


def segments_in(inodes: set[int]) -> dict[int, int]:
    """Return the segments received so far, duplicates too, on the open connections of these
    sockets; empty if that cannot be seen."""
    try:
        connections = (
            connection for connection in established_connections() if connection.inode in inodes
        )
        return {
            connection.inode: connection.read_info(COUNT, SEGMENTS_AT)[0]
            for connection in connections
        }
    except (OSError, struct.error):
        return {}


def silent_times(inodes: set[int]) -> dict[int, float]:
    """Return for how long no data has gone through the open connections of these sockets, either way (s), by
    inode; empty if that cannot be seen."""
    try:
        return {
            connection.inode: min(
                connection.read_info(COUNT, LAST_DATA_SENT_AT)[0],
                connection.read_info(COUNT, LAST_DATA_RECEIVED_AT)[0],
            )
            / 1000
            for connection in established_connections()
            if connection.inode in inodes and connection.info
        }
    except (OSError, struct.error):
        return {}
