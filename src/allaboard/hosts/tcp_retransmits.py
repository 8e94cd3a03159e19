"""Connections of a process that the other side does not answer: what the kernel itself counts."""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

from allaboard.facts import Silence
from allaboard.hosts import proc
from allaboard.hosts.socket_bytes import segments_in

SYN_SENT, ESTABLISHED = "02", "01"
"""States in /proc/net/tcp; include/net/tcp_states.h."""
PROBE_TIMER = "04:"
"""The timer of a closed window, also where nothing goes out; get_tcp4_sock in net/ipv4/tcp_ipv4.c."""
MIN_SYN_RETRANSMITS, MIN_DATA_RETRANSMITS = 2, 4
"""Retransmissions without an answer: two of a SYN are three seconds of silence (RFC 6298: 1 s and 2 s);
data of a live connection is sent again after fractions of a second."""


class UnansweredConnections:
    """Finds connections that retransmit in vain, and remembers how much the other ends had sent at
    the last look."""

    def __init__(self) -> None:
        self._segments: dict[int, dict[int, int]] = {}
        self._looked_at = 0.0
        self._by_namespace: dict[int, dict[int, tuple[str, str, int]]] = {}
        """What was found at this look, by network namespace: its processes show the same tables, which are
        long on a busy host."""

    def find_silences(self, pid: int, now: float) -> tuple[Silence, ...]:
        """Return the connections of ``pid`` to other hosts that have been retransmitting without an
        answer; empty if there is none, or it may not be seen.

        What had come in when the retransmitting began is remembered, so that it is known what has
        come in since. Processes that are asked about at the same ``now`` (s) are of one look.
        """
        if now != self._looked_at:
            self._looked_at, self._by_namespace = now, {}
        try:
            namespace = Path(f"/proc/{pid}/ns/net").stat().st_ino
        except OSError:
            namespace = -pid
        if namespace not in self._by_namespace:
            self._by_namespace[namespace] = {
                inode: (kind, end, again) for inode, kind, end, again in _retransmitting(pid)
            }
        retransmitting = self._by_namespace[namespace]
        inodes = set(proc.socket_inodes(pid)) & set(retransmitting) if retransmitting else set()
        if not inodes:
            self._segments.pop(pid, None)
            return ()
        segments_before = self._segments.get(pid, {})
        at_start, segments_now = (
            {i: n for i, n in segments_before.items() if i in inodes},
            segments_in(inodes),
        )
        self._segments[pid] = segments_now | at_start  # as it was when it began
        silences = set()
        for inode in inodes:
            kind, remote, again = retransmitting[inode]
            if again >= (MIN_SYN_RETRANSMITS if kind == "connect" else MIN_DATA_RETRANSMITS):
                is_countable = inode in segments_now and inode in at_start
                silences.add(
                    Silence(
                        kind,
                        remote,
                        segments_now[inode] > at_start[inode] if is_countable else None,
                    )
                )
        return tuple(sorted(silences, key=lambda s: (s.kind, s.address)))


def _retransmitting(pid: int) -> Iterator[tuple[int, str, str, int]]:
    for table in ("tcp", "tcp6"):
        try:
            yield from retransmissions_in_table(Path(f"/proc/{pid}/net/{table}").read_text())
        except OSError:
            continue


def retransmissions_in_table(table: str) -> Iterator[tuple[int, str, str, int]]:
    """Yield inode, kind, other end and number of attempts of every connection in such a table
    (proc(5)) that sends something again.

    If this host's own firewall drops what goes out, nothing counts as sent: the kernel asks again
    and again whether it may send, and counts what is not answered (icsk_probes_out). A host that
    has no room for more data does answer.
    """
    for line in table.splitlines()[1:]:
        fields = line.split()
        state = fields[3]
        again = int(fields[6], 16) or (int(fields[8]) if fields[5].startswith(PROBE_TIMER) else 0)
        sending = state == ESTABLISHED and int(fields[4].partition(":")[0], 16) > 0
        if not again or not (state == SYN_SENT or sending):
            continue
        host, _, port = fields[2].partition(":")
        where = parse_kernel_address(host)
        if not where.is_loopback:
            kind = "connect" if state == SYN_SENT else "send"
            shown = f"[{where}]" if where.version == 6 else str(where)
            yield int(fields[9]), kind, f"{shown}:{int(port, 16)}", again


def parse_kernel_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return an address as /proc/net/tcp writes it: words of 32 bits in the byte order of the
    machine."""
    packed = struct.pack(
        f"={len(text) // 8}I", *(int(text[i : i + 8], 16) for i in range(0, len(text), 8))
    )
    if len(packed) == 4:
        return ipaddress.IPv4Address(socket.inet_ntoa(packed))
    ipv6 = ipaddress.IPv6Address(packed)
    return ipv6.ipv4_mapped or ipv6
