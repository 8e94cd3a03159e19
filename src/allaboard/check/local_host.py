"""What this host can say of itself from files: no name is resolved, no packet sent."""

from __future__ import annotations

import os
from collections.abc import Sequence

from allaboard.facts import FilePlace, LocalHost


def read_local_host(addresses: bool = True) -> LocalHost:
    """Return this host's own name, what its hosts file makes of it, and its devices.

    With ``addresses`` its interfaces are asked for theirs, which takes a socket.
    """
    name = os.uname().nodename
    interfaces = _list_folder("/sys/class/net")
    gpus = [n for n in _list_folder("/dev") if n.startswith("nvidia") and n[6:].isdecimal()]
    hosts_file_addresses = _addresses_in_hosts_file(name, "/etc/hosts")
    return LocalHost(
        name=name,
        named=hosts_file_addresses,
        interfaces=interfaces,
        addresses=_interface_addresses(interfaces) if addresses else (),
        gpus=len(gpus),
        infiniband=_list_folder("/sys/class/infiniband"),
    )


def _list_folder(folder: str) -> tuple[str, ...]:
    try:
        return tuple(sorted(os.listdir(folder)))  # noqa: PTH208 - pathlib takes longer to load
    except OSError:
        return ()


def _addresses_in_hosts_file(name: str, hosts: str) -> tuple[str, ...]:
    """Return the addresses that the hosts file gives this name (hosts(5))."""
    try:
        with open(hosts, errors="replace") as file:  # noqa: PTH123
            lines = file.read().split("\n")[:10_000]
    except OSError:
        return ()
    addresses = []
    for line in lines:
        fields = line.split("#")[0].split()
        if len(fields) > 1 and name in fields[1:]:
            addresses.append(fields[0])
    return tuple(addresses)


def _interface_addresses(interfaces: Sequence[str]) -> tuple[str, ...]:
    """Return IPv4 addresses by SIOCGIFADDR (netdevice(7)), without loopback."""
    import fcntl
    import socket
    import struct

    addresses = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for name in interfaces:
            request = struct.pack("256s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(probe.fileno(), 0x8915, request)
            except OSError:
                continue
            address = socket.inet_ntoa(answer[20:24])
            if not address.startswith("127."):
                addresses.append(address)
    return tuple(addresses)


def read_file_place(path: str) -> FilePlace:
    """Return the file of a file:// rendezvous, and the file system that it is on."""
    import time
    from pathlib import Path

    from allaboard.hosts.mounts import mount_of

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
