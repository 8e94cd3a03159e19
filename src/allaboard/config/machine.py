"""What this host can say of itself by reading files: no name is resolved, no packet sent."""

from __future__ import annotations

import os
import time
from pathlib import Path

from allaboard.facts import FilePlace, LocalHost
from allaboard.hosts.mounts import mount_of


def local_host(root: Path = Path("/")) -> LocalHost:
    """This host's own name, what its hosts file makes of it, and its devices.

    ``root`` is where /etc, /sys and /dev are read, for hosts that are looked at from outside.
    """
    name = os.uname().nodename
    net = root / "sys/class/net"
    interfaces = sorted(p.name for p in net.iterdir()) if net.is_dir() else []
    rdma = root / "sys/class/infiniband"
    devices = sorted(p.name for p in rdma.iterdir()) if rdma.is_dir() else []
    gpus = [p for p in (root / "dev").glob("nvidia[0-9]*") if p.name[6:].isdigit()]
    return LocalHost(
        name=name,
        named=_named(name, root / "etc/hosts"),
        interfaces=tuple(interfaces),
        addresses=_addresses(interfaces),
        gpus=len(gpus),
        infiniband=tuple(devices),
    )


def _named(name: str, hosts: Path) -> tuple[str, ...]:
    """The addresses that the hosts file gives this name (hosts(5))."""
    try:
        text = hosts.read_text(errors="replace")
    except OSError:
        return ()
    found = []
    for line in text.split("\n")[:10_000]:
        words = line.split("#")[0].split()
        if len(words) > 1 and name in words[1:]:
            found.append(words[0])
    return tuple(found)


def _addresses(interfaces: list[str]) -> tuple[str, ...]:
    """IPv4 addresses by SIOCGIFADDR (netdevice(7)), loopback left out."""
    import fcntl
    import socket
    import struct

    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for name in interfaces:
            request = struct.pack("256s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(probe.fileno(), 0x8915, request)
            except OSError:
                continue
            address = socket.inet_ntoa(answer[20:24])
            if not address.startswith("127."):
                found.append(address)
    return tuple(found)


def file_place(path: str) -> FilePlace:
    """The file of a file:// rendezvous, and the file system that it is on."""
    folder = Path(path).parent
    mount = mount_of(str(folder.resolve()))
    size, age = -1, -1.0
    try:
        status = Path(path).stat()
        size, age = status.st_size, max(0.0, time.time() - status.st_mtime)
    except OSError:
        pass
    target = path if size >= 0 else folder
    return FilePlace(
        path=path,
        folder=folder.is_dir(),
        writable=os.access(target, os.W_OK),
        size=size,
        age=age,
        filesystem=mount.filesystem if mount is not None else "",
        options=mount.options if mount is not None else "",
    )
