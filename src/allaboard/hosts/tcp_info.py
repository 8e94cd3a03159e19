"""The TCP connections of processes with what the kernel counts of them: sock_diag(7), TCP_INFO."""

from __future__ import annotations

import socket
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from allaboard.facts import Flow
from allaboard.hosts import proc

ESTABLISHED = 1 << 1
"""TCP_ESTABLISHED as a bit of idiag_states, net/tcp_states.h."""
INFO = 1 << 1
"""INET_DIAG_INFO as a bit of idiag_ext, linux/inet_diag.h."""
MICRO = 1e-6


class Sockets:
    """Asks the kernel; every process must be in this network namespace. Not for two threads at once."""

    def __init__(self) -> None:
        """Raises OSError where the kernel has no socket diagnosis or refuses it."""
        from pyroute2 import DiagSocket  # here: it takes a tenth of a second, and few jobs need it

        self._asked = DiagSocket()
        self._asked.bind()

    def flows(self, pids: Iterable[int]) -> dict[int, tuple[Flow, ...]]:
        """The established connections of each of these processes; none of one that is gone, or another
        user's. Raises OSError."""
        owners = {inode: pid for pid in pids for inode in proc.socket_inodes(pid)}
        found: dict[int, list[Flow]] = defaultdict(list)
        for family in (socket.AF_INET, socket.AF_INET6) if owners else ():
            for one in self._asked.get_sock_stats(
                family=family, states=ESTABLISHED, extensions=INFO
            ):
                pid = owners.get(one["idiag_inode"])
                info = one.get_attr("INET_DIAG_INFO")
                if pid is not None and info is not None:
                    found[pid].append(_flow(one, info))
        return {pid: tuple(many) for pid, many in found.items()}

    def close(self) -> None:
        self._asked.close()


def _flow(one: Any, info: Any) -> Flow:
    return Flow(
        local=_end(one["idiag_src"], one["idiag_sport"]),
        remote=_end(one["idiag_dst"], one["idiag_dport"]),
        received=info["tcpi_bytes_received"],
        sent=info["tcpi_bytes_acked"],
        unread=one["idiag_rqueue"],
        unsent=one["idiag_wqueue"],
        rtt=info["tcpi_rtt"] * MICRO,
        least=info["tcpi_min_rtt"] * MICRO if info["tcpi_min_rtt"] != 0xFFFFFFFF else 0.0,
        busy=info["tcpi_busy_time"] * MICRO,
    )


def _end(address: str, port: int) -> str:
    """``127.0.0.1:21000``; TensorFlow's sockets are of IPv6 and hold IPv4 addresses mapped into it."""
    return f"{address.removeprefix('::ffff:')}:{port}"
