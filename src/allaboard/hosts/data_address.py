"""The address on which the frameworks' own data connections will be made, and who holds a port."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from collections.abc import Mapping
from pathlib import Path

from allaboard.hosts import proc

LOOPBACK = "127.0.0.1"


def data_address(environment: Mapping[str, str]) -> tuple[str, str]:
    """The address, and where it comes from.

    As gloo does it (ProcessGroupGloo::createDefaultDevice): the interface that GLOO_SOCKET_IFNAME
    names, else what this host's own name resolves to, else loopback. May wait for a name server.
    """
    name = environment.get("GLOO_SOCKET_IFNAME", "").split(",")[0]
    if name:
        found = interface_address(name)
        return found, f"GLOO_SOCKET_IFNAME={name}"
    host = os.uname().nodename
    try:
        for *_, where in socket.getaddrinfo(host, 0, socket.AF_INET, socket.SOCK_STREAM):
            with socket.socket() as probe:
                try:
                    probe.bind((where[0], 0))
                except OSError:
                    continue
                return str(where[0]), f"what {host} resolves to on itself"
    except OSError:
        pass
    return LOOPBACK, f"{host} does not resolve to an address of its own"


def interface_address(name: str) -> str:
    """The interface's IPv4 address by SIOCGIFADDR, netdevice(7); empty where it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            request = struct.pack("256s", name.encode()[:15])
            return socket.inet_ntoa(fcntl.ioctl(probe.fileno(), 0x8915, request)[20:24])
        except OSError:
            return ""


def holder_of(port: int) -> tuple[int, str]:
    """Pid and command line of the process that listens on ``port`` here; 0 and "" where it is not
    to be seen (another user's, another container's)."""
    inodes = set(_listening(port))
    if not inodes:
        return 0, ""
    for folder in Path("/proc").glob("[0-9]*/fd"):
        try:
            for entry in os.scandir(folder):
                if os.readlink(entry.path) in inodes:  # noqa: PTH115 - many
                    pid = int(folder.parent.name)
                    return pid, " ".join(proc.command_line(pid))[:200]
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
