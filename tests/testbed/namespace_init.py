"""The process that holds a bed's namespaces. They live as long as their first processes, and those
no longer than this one: nothing has a name, so nothing can be left behind.

It ends, and takes everything with it, when its standard input is closed, when its owner is gone
(even by SIGKILL), or when the bed's lifetime is over.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import sys
from pathlib import Path
from typing import NoReturn

from testbed import sysctl
from testbed.dns import NSSWITCH
from testbed.start_order import Order


def main() -> None:
    """Reads an Order from its argument; writes the pids of the first processes as JSON, the
    switch's first, or {"error": why}."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    order = Order(**json.loads(sys.argv[1]))
    children: list[int] = []
    try:
        pids = [_host(order, None, children)]
        pids += [_host(order, index, children) for index in range(len(order.names))]
        print(json.dumps({"pids": pids}), flush=True)
        _wait(order)
    except OSError as error:
        print(json.dumps({"error": str(error)}), flush=True)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)  # its own child, the host's first process, dies with it
        for child in children:
            os.waitpid(child, 0)
        shutil.rmtree(order.folder, ignore_errors=True)


def _wait(order: Order) -> None:
    ends = select.poll()
    ends.register(0, select.POLLIN | select.POLLHUP)
    with contextlib.suppress(ProcessLookupError):
        ends.register(os.pidfd_open(order.owner), select.POLLIN)
        ends.poll(order.lifetime * 1000)


def _host(order: Order, index: int | None, children: list[int]) -> int:
    """Makes one host (None: the switch); returns the pid of its first process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _between(order, index, writing)
    children.append(child)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        answers = dict(line.rstrip("\n").split(" ", 1) for line in pipe)
    if "ready" not in answers:
        raise OSError(answers.get("error", "a host's first process died"))
    return int(answers["pid"])


def _between(order: Order, index: int | None, writing: int) -> NoReturn:
    """The parent of a host's first process: it alone can make that process's namespaces."""
    code = 1
    try:
        sysctl.die_with_parent(signal.SIGKILL)
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        os.setsid()
        sysctl.unshare(sysctl.NEW_NET | sysctl.NEW_PIDS | sysctl.NEW_MOUNTS)
        if index is not None:
            sysctl.unshare(sysctl.NEW_UTS | sysctl.NEW_IPC | sysctl.NEW_TIME)
            up = int(order.uptimes[index])
            Path("/proc/self/timens_offsets").write_text(f"monotonic {up} 0\nboottime {up} 0\n")
        first = os.fork()
        if first == 0:
            _first(order, index, writing)
        os.write(writing, f"pid {first}\n".encode())
        os.close(writing)
        os.waitpid(first, 0)
        code = 0
    except OSError as error:
        os.write(writing, f"error {error}\n".encode())
    finally:
        os._exit(code)


def _first(order: Order, index: int | None, writing: int) -> NoReturn:
    """A host's first process: sets the host up, then does nothing but reap."""
    try:
        sysctl.die_with_parent(signal.SIGKILL)
        sysctl.mount("", "/", flags=sysctl.RECURSIVE | sysctl.PRIVATE)
        sysctl.mount("proc", "/proc", "proc")
        if index is not None:
            socket.sethostname(order.names[index])
            _mounts(order.names[index], order.hosts_file)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        os.write(writing, b"ready \n")
        os.close(writing)
        while True:
            signal.pause()
    except OSError as error:
        os.write(writing, f"error {error}\n".encode())
    finally:
        os._exit(1)


def _mounts(name: str, hosts_file: str) -> None:
    """The host's own /run, /dev/shm, /sys of its network, and what /etc says about names."""
    sysctl.mount("tmpfs", "/run", "tmpfs", options="mode=755")
    sysctl.mount("tmpfs", "/dev/shm", "tmpfs", options="mode=1777")
    kept = Path("/run/cgroup")
    kept.mkdir()
    sysctl.mount("/sys/fs/cgroup", str(kept), flags=sysctl.BIND | sysctl.RECURSIVE)
    sysctl.mount("sysfs", "/sys", "sysfs")
    sysctl.mount(str(kept), "/sys/fs/cgroup", flags=sysctl.MOVE)
    kept.rmdir()
    texts = {"hosts": hosts_file, "nsswitch.conf": NSSWITCH, "hostname": f"{name}\n"}
    texts["resolv.conf"] = ""
    folder = Path("/run/bed")
    folder.mkdir()
    for file, text in texts.items():
        (folder / file).write_text(text)
        target = Path("/etc", file)
        if target.exists():
            sysctl.mount(str(folder / file), str(target.resolve()), flags=sysctl.BIND)


if __name__ == "__main__":
    main()
