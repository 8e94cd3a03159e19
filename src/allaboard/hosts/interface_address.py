"""The address on which the frameworks' own data connections will be made, and who holds a port."""

from __future__ import annotations

import fcntl
import ipaddress
import os
import socket
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from allaboard.hosts import proc
from allaboard.hosts.agent_alias import behind

LOOPBACK = "127.0.0.1"
INTERFACE = "GLOO_SOCKET_IFNAME"
GLOBAL, FAILED = 0x00, 0x08
"""Scope of an IPv6 address that others reach, and the flag of one that somebody else has too; linux/ipv6.h,
linux/if_addr.h."""


class DataAddress(NamedTuple):
    """The ``address`` that others are told, where it comes from (``origin``), and the ``first`` of those that
    gloo may take, which is the one it takes: of another family, maybe."""

    address: str
    origin: str
    first: str

    @property
    def facts(self) -> dict[str, str]:
        """What is known of it, by the names that facts of a member have."""
        return {
            "data address": self.address,
            "data interface": self.origin,
            "gloo address": self.first,
        }


UNKNOWN = DataAddress("", "", "")


def data_address(environment: Mapping[str, str]) -> DataAddress:
    """The address, and where it comes from.

    As gloo does it (ProcessGroupGloo::createDefaultDevice): the interface that GLOO_SOCKET_IFNAME
    names, else what this host's own name resolves to, else loopback. It takes addresses of both families,
    in the resolver's order; of several the first of IPv4 is told, which every framework can use. May wait for
    a name server.
    """
    name = environment.get(INTERFACE, "").split(",")[0]
    if name:
        found = interface_address(name)
        return DataAddress(found, f"{INTERFACE}={name}", found)
    host = os.uname().nodename
    try:
        usual = list(_usable(host))
    except OSError:
        usual = []
    if not usual:
        return DataAddress(LOOPBACK, f"{host} does not resolve to an address of its own", LOOPBACK)
    return DataAddress(preferred(usual), f"what {host} resolves to on itself", usual[0])


def preferred(usable: list[str]) -> str:
    """The one to tell of those, in the resolver's order, that gloo may take: one that others reach, where
    the first is no loopback address."""
    fourth = [a for a in usable if ":" not in a and not a.startswith("127.")]
    return fourth[0] if fourth else usable[0]


def _usable(host: str) -> Iterator[str]:
    """The host's own addresses, as its name resolves; raises OSError where it does not."""
    for family, kind, _, _, where in socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM):
        if str(where[0]).startswith("fe80:"):
            continue  # means nothing to another host
        try:
            with socket.socket(family, kind) as probe:
                probe.bind(where)
        except OSError:
            continue
        yield str(where[0])


def interface_address(name: str) -> str:
    """The interface's address; empty where it has none that others reach."""
    return _fourth(name) or _sixth(name)


def _sixth(name: str) -> str:
    try:
        return sixth(name, Path("/proc/net/if_inet6").read_text())
    except OSError:  # a kernel without IPv6
        return ""


def sixth(name: str, table: str) -> str:
    """Its IPv6 address by if_inet6, proc_net(5), link-local ones left out."""
    for line in table.splitlines():
        digits, _, _, scope, flags, interface = line.split()
        if interface == name and int(scope, 16) == GLOBAL and not int(flags, 16) & FAILED:
            return str(ipaddress.IPv6Address(bytes.fromhex(digits)))
    return ""


def _fourth(name: str) -> str:
    """Its IPv4 address by SIOCGIFADDR, netdevice(7)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            request = struct.pack("256s", name.encode()[:15])
            return socket.inet_ntoa(fcntl.ioctl(probe.fileno(), 0x8915, request)[20:24])
        except OSError:
            return ""


def holder_of(port: int) -> tuple[int, str]:
    """Pid and command line of the process that listens on ``port`` here, of the program itself where its
    drop-in's agent does; 0 and "" where it is not to be seen (another user's, another container's)."""
    inodes = set(_listening(port))
    if not inodes:
        return 0, ""
    for folder in Path("/proc").glob("[0-9]*/fd"):
        try:
            with os.scandir(folder) as entries:
                holds = any(os.readlink(e.path) in inodes for e in entries)  # noqa: PTH115 - many
            if holds:
                pid = int(folder.parent.name)
                return behind(pid, " ".join(proc.command_line(pid))[:200])
        except OSError:
            continue
    return 0, ""


def _listening(port: int) -> list[str]:
    """The sockets, as /proc/PID/fd names them, that listen on the port: /proc/net/tcp, proc(5)."""
    found = []
    for table in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            words = line.split()
            if words[3] == "0A" and int(words[1].rpartition(":")[2], 16) == port:
                found.append(f"socket:[{words[9]}]")
    return found
