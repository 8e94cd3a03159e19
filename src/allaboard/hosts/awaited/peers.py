"""Who holds the other end of what a process waits at: a TCP connection, a Unix socket, or a pipe.

From /proc (proc(5)) and sock_diag(7). Descriptors of processes that this user may not examine are not seen.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from allaboard.facts import Awaited
from allaboard.hosts.awaited.descriptors import awaited_descriptors
from allaboard.hosts.awaited.unix_sockets import unix_peer_inode
from allaboard.hosts.process_sockets import inodes_by_ends, process_sockets

_OPEN_FLAGS = re.compile(r"^flags:\s{0,16}([0-7]{1,12})\b", re.MULTILINE)
"""A line of /proc/PID/fdinfo/FD: the flags of open(2), in octal."""
_ACCESS_MODE, _READ_ONLY, _WRITE_ONLY = 3, 0, 1
"""O_ACCMODE, O_RDONLY and O_WRONLY."""
MAX_AWAITED = 8
"""Ends of one process that are looked up; one that waits at more waits for anybody."""
_Holders = dict[str, list[tuple[int, int]]]
"""What is open, as /proc names it, to the pids and descriptors that have it."""


def awaited_peers(pid: int) -> tuple[Awaited, ...]:
    """Return what the main thread of the process waits to read from, with the processes of this host that
    hold the other ends; () if it waits for nothing that has another end."""
    awaited = awaited_descriptors(pid)
    links = [_link(f"/proc/{pid}/fd/{fd}") for fd in dict.fromkeys(awaited.numbers)]
    sockets = [link[8:-1] for link in links if link.startswith("socket:[")]
    pipes = [link for link in links if link.startswith("pipe:[") and awaited.is_selective]
    if not sockets and not pipes:
        return ()
    inodes = inodes_by_ends(pid) if sockets else {}
    ends_of = {inode: ends for ends, inode in inodes.items() if inode in sockets}
    if not awaited.is_selective:
        # A loop of events serves those that connected to it: it waits for whoever of them asks next.
        served = {s.local.rpartition(":")[2] for s in process_sockets(pid) if s.state == "LISTEN"}
        ends_of = {i: e for i, e in ends_of.items() if e[0].rpartition(":")[2] not in served}
    connections = [ends for ends in ends_of.values() if not ends[1].endswith(":0")]
    units = [i for i in sockets if i not in inodes.values()] if awaited.is_selective else []
    if not 0 < len(connections) + len(units) + len(pipes) <= MAX_AWAITED:
        return ()
    return _with_holders(pid, connections, inodes, units, pipes)


def connected_peers(pid: int) -> tuple[Awaited, ...]:
    """Return the TCP connections of the process, with the processes of this host that hold the other ends: a
    library that waits in a thread of its own (gRPC, ZeroMQ) does not show at which of them."""
    connections = [
        (s.local, s.remote)
        for s in process_sockets(pid)
        if s.state == "ESTAB" and s.local != s.remote
    ]
    return _with_holders(pid, connections, inodes_by_ends(pid), (), ()) if connections else ()


def _with_holders(
    pid: int,
    connections: Iterable[tuple[str, str]],
    inodes: dict[tuple[str, str], str],
    units: Iterable[str],
    pipes: Iterable[str],
) -> tuple[Awaited, ...]:
    peer_of_unit = {inode: f"socket:[{unix_peer_inode(int(inode))}]" for inode in units}
    peer_of_ends = {
        (local, remote): f"socket:[{inodes.get((remote, local), 0)}]"
        for local, remote in connections
    }
    holders = find_holders({*peer_of_unit.values(), *peer_of_ends.values(), *pipes})

    def pids(link: str, is_end: Callable[[int, int], bool] = lambda *_: True) -> tuple[int, ...]:
        return tuple(sorted({p for p, fd in holders.get(link, ()) if p != pid and is_end(p, fd)}))

    return (
        *(Awaited(local=ends[0], remote=ends[1], pids=pids(p)) for ends, p in peer_of_ends.items()),
        *(Awaited(means="a Unix socket", pids=pids(peer)) for peer in peer_of_unit.values()),
        *(Awaited(means="a pipe", pids=pids(link, _may_write)) for link in pipes),
    )


def find_holders(links: set[str]) -> _Holders:
    """Return which processes of this host have these sockets and pipes open, in one pass."""
    holders: _Holders = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - names are enough
        if not name.isdecimal():
            continue
        try:
            descriptors = os.listdir(f"/proc/{name}/fd")  # noqa: PTH208 - names are enough
        except OSError:
            continue
        for fd in descriptors:
            link = _link(f"/proc/{name}/fd/{fd}")
            if link in links:
                holders.setdefault(link, []).append((int(name), int(fd)))
    return holders


def _link(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115 - many
    except OSError:
        return ""  # closed meanwhile, or another user's


def may_read(pid: int, fd: int) -> bool:
    """Return True if the process has opened this descriptor for reading."""
    return _access_mode(pid, fd) not in (None, _WRITE_ONLY)


def _may_write(pid: int, fd: int) -> bool:
    return _access_mode(pid, fd) not in (None, _READ_ONLY)


def _access_mode(pid: int, fd: int) -> int | None:
    try:
        match = _OPEN_FLAGS.search(Path(f"/proc/{pid}/fdinfo/{fd}").read_text())
    except OSError:
        return None
    return int(match[1], 8) & _ACCESS_MODE if match is not None else None
