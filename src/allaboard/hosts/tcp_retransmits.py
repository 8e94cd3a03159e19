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
PROBES = "04:"
"""The timer of a closed window, also where nothing goes out; get_tcp4_sock in net/ipv4/tcp_ipv4.c."""
FIRST, LATER = 2, 4
"""Retransmissions without an answer: two of a SYN are three seconds of silence (RFC 6298: 1 s and 2 s);
data of a live connection is sent again after fractions of a second."""


class Unanswered:
    """Asks again and again, and remembers how much the other sides had sent at the last time."""

    def __init__(self) -> None:
        self._segments: dict[int, dict[int, int]] = {}

    def ask(self, pid: int) -> tuple[Silence, ...]:
        """The connections of ``pid`` to other hosts that have been retransmitting in vain; empty where
        there is none, or where it may not be seen. Who began to is remembered, so that it is known what
        came in since when it is told."""
        found = {inode: (kind, end, again) for inode, kind, end, again in _retransmitting(pid)}
        own = set(proc.socket_inodes(pid)) & set(found) if found else set()
        if not own:
            self._segments.pop(pid, None)
            return ()
        known_before = self._segments.get(pid, {})
        before, now = {i: n for i, n in known_before.items() if i in own}, segments_in(own)
        self._segments[pid] = now | before  # as it was when it began
        silences = set()
        for inode in own:
            kind, other, again = found[inode]
            if again >= (FIRST if kind == "connect" else LATER):
                known = inode in now and inode in before
                silences.add(Silence(kind, other, now[inode] > before[inode] if known else None))
        return tuple(sorted(silences, key=lambda s: (s.kind, s.address)))


def _retransmitting(pid: int) -> Iterator[tuple[int, str, str, int]]:
    for table in ("tcp", "tcp6"):
        try:
            yield from in_vain(Path(f"/proc/{pid}/net/{table}").read_text())
        except OSError:
            continue


def in_vain(table: str) -> Iterator[tuple[int, str, str, int]]:
    """Inode, kind, other end and number of attempts of every connection in such a table (proc(5)) on which
    something was sent again. Where this host's own firewall drops what goes out, nothing counts as sent: the
    kernel asks again and again whether it may send, and counts what is not answered (icsk_probes_out). A host
    that has no room for more does answer."""
    for line in table.splitlines()[1:]:
        words = line.split()
        state = words[3]
        again = int(words[6], 16) or (int(words[8]) if words[5].startswith(PROBES) else 0)
        sending = state == ESTABLISHED and int(words[4].partition(":")[0], 16) > 0
        if not again or not (state == SYN_SENT or sending):
            continue
        host, _, port = words[2].partition(":")
        where = address(host)
        if not where.is_loopback:
            kind = "connect" if state == SYN_SENT else "send"
            shown = f"[{where}]" if where.version == 6 else str(where)
            yield int(words[9]), kind, f"{shown}:{int(port, 16)}", again


def address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """An address as /proc/net/tcp writes it: words of 32 bits in the byte order of the machine."""
    words = struct.pack(
        f"={len(text) // 8}I", *(int(text[i : i + 8], 16) for i in range(0, len(text), 8))
    )
    if len(words) == 4:
        return ipaddress.IPv4Address(socket.inet_ntoa(words))
    found = ipaddress.IPv6Address(words)
    return found.ipv4_mapped or found
