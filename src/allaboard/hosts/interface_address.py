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
from allaboard.hosts.agent_alias import owner_behind_agent

LOOPBACK = "127.0.0.1"
GLOO_INTERFACE_VARIABLE = "GLOO_SOCKET_IFNAME"
IPV6_GLOBAL_SCOPE, IPV6_DAD_FAILED = 0x00, 0x08
"""Scope of an IPv6 address that others reach, and the flag of one that somebody else has too; linux/ipv6.h,
linux/if_addr.h."""


class DataAddress(NamedTuple):
    """The address that other hosts are given for data connections."""

    address: str
    """Address that the others are given."""
    origin: str
    """Where the address comes from: an interface, or what the host's own name resolves to."""
    gloo_address: str
    """First of the addresses that gloo may take, which is the one it takes; it may be of another
    family."""

    @property
    def as_facts(self) -> dict[str, str]:
        """Return it under the names that facts of a member have."""
        return {
            "data address": self.address,
            "data interface": self.origin,
            "gloo address": self.gloo_address,
        }


UNKNOWN_DATA_ADDRESS = DataAddress("", "", "")


def data_address(environment: Mapping[str, str]) -> DataAddress:
    """The address, and where it comes from.

    As gloo does it (ProcessGroupGloo::createDefaultDevice): the interface that GLOO_SOCKET_IFNAME
    names, else what this host's own name resolves to, else loopback. It takes addresses of both families,
    in the resolver's order; of several the first of IPv4 is told, which every framework can use. May wait for
    a name server.
    """
    name = environment.get(GLOO_INTERFACE_VARIABLE, "").split(",")[0]
    if name:
        address = interface_address(name)
        return DataAddress(address, f"{GLOO_INTERFACE_VARIABLE}={name}", address)
    host = os.uname().nodename
    try:
        own_addresses = list(_own_addresses(host))
    except OSError:
        own_addresses = []
    if not own_addresses:
        return DataAddress(LOOPBACK, f"{host} does not resolve to an address of its own", LOOPBACK)
    return DataAddress(
        preferred_address(own_addresses), f"what {host} resolves to on itself", own_addresses[0]
    )


def preferred_address(usable: list[str]) -> str:
    """Return the address to give to others, of those (in the resolver's order) that gloo may take:
    the first IPv4 address that is no loopback address, else the first."""
    reachable_ipv4 = [a for a in usable if ":" not in a and not a.startswith("127.")]
    return reachable_ipv4[0] if reachable_ipv4 else usable[0]


def _own_addresses(host: str) -> Iterator[str]:
    """Yield the host's own addresses, as its name resolves. Raises OSError if it does not resolve."""
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
    return _ipv4_of_interface(name) or _ipv6_of_interface(name)


def _ipv6_of_interface(name: str) -> str:
    try:
        return ipv6_in_table(name, Path("/proc/net/if_inet6").read_text())
    except OSError:  # a kernel without IPv6
        return ""


def ipv6_in_table(name: str, table: str) -> str:
    """Return the interface's IPv6 address in the text of if_inet6, proc_net(5); link-local ones are
    left out."""
    for line in table.splitlines():
        digits, _, _, scope, flags, interface = line.split()
        if (
            interface == name
            and int(scope, 16) == IPV6_GLOBAL_SCOPE
            and not int(flags, 16) & IPV6_DAD_FAILED
        ):
            return str(ipaddress.IPv6Address(bytes.fromhex(digits)))
    return ""


def _ipv4_of_interface(name: str) -> str:
    """Return the interface's IPv4 address by SIOCGIFADDR, netdevice(7); "" if it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            request = struct.pack("256s", name.encode()[:15])
            return socket.inet_ntoa(fcntl.ioctl(probe.fileno(), 0x8915, request)[20:24])
        except OSError:
            return ""


def port_holder(port: int) -> tuple[int, str]:
    """Return pid and command line of the process that listens on ``port`` here; of the program
    itself if its drop-in's agent listens. 0 and "" if it cannot be seen (another user's, another
    container's)."""
    inodes = set(_listening(port))
    if not inodes:
        return 0, ""
    for folder in Path("/proc").glob("[0-9]*/fd"):
        try:
            with os.scandir(folder) as entries:
                holds = any(os.readlink(e.path) in inodes for e in entries)  # noqa: PTH115 - many
            if holds:
                pid = int(folder.parent.name)
                return owner_behind_agent(pid, " ".join(proc.command_line(pid))[:200])
        except OSError:
            continue
    return 0, ""


def _listening(port: int) -> list[str]:
    """Return the sockets that listen on the port, as /proc/PID/fd names them; /proc/net/tcp,
    proc(5)."""
    sockets = []
    for table in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                sockets.append(f"socket:[{fields[9]}]")
    return sockets
