"""The file descriptors that the main thread of a process waits at, from its system call: proc(5).

Numbers of system calls are those of the kernel's tables for x86-64 and for the others, which share one
(arm64, riscv64). Nothing is paused: the arguments of the call, and the arrays that they point to, are read
beside it.
"""

from __future__ import annotations

import platform
import re
import struct
from pathlib import Path
from typing import NamedTuple

_READ_X86 = (0, 19, 45, 47)
_READ_GENERIC = (63, 65, 207, 212)
"""read, readv, recvfrom and recvmsg."""
_POLL_X86 = (7, 271)
_POLL_GENERIC = (73,)
"""poll and ppoll."""
_EPOLL_X86 = (232, 281, 441)
_EPOLL_GENERIC = (22, 441)
"""epoll_wait, epoll_pwait and epoll_pwait2."""
_POLLED = struct.Struct("=ihh")
"""``struct pollfd``: the descriptor, what is asked for, what there is."""
_POLLIN = 1
MAX_DESCRIPTORS = 256
"""Descriptors of one call that are read."""
_WATCHED = re.compile(r"^tfd:\s{0,16}(\d{1,9})\b", re.MULTILINE)
"""A line of /proc/PID/fdinfo/FD of an epoll descriptor: one that it watches."""


class AwaitedDescriptors(NamedTuple):
    """The descriptors of one call."""

    numbers: tuple[int, ...]
    """The descriptors."""
    is_selective: bool
    """False if the call waits at many of which any may wake it, as the loop of a server does."""


NOTHING_AWAITED = AwaitedDescriptors((), True)


def awaited_descriptors(pid: int) -> AwaitedDescriptors:
    """Return where the main thread waits for something to read; nothing if it runs, waits otherwise, or may
    not be examined."""
    try:
        fields = Path(f"/proc/{pid}/syscall").read_text().split()
        number, arguments = int(fields[0]), [int(w, 16) for w in fields[1:7]]
        return _descriptors(pid, number, arguments)
    except (OSError, ValueError, IndexError, OverflowError, struct.error):
        return NOTHING_AWAITED


def _descriptors(pid: int, number: int, arguments: list[int]) -> AwaitedDescriptors:
    x86 = platform.machine() == "x86_64"
    if number in (_READ_X86 if x86 else _READ_GENERIC):
        return AwaitedDescriptors((arguments[0],), True)
    if number in (_POLL_X86 if x86 else _POLL_GENERIC):
        descriptors = _polled(pid, arguments[0], min(arguments[1], MAX_DESCRIPTORS))
        return AwaitedDescriptors(descriptors, len(descriptors) == 1)
    if number in (_EPOLL_X86 if x86 else _EPOLL_GENERIC):
        text = Path(f"/proc/{pid}/fdinfo/{arguments[0]}").read_text()
        watched = tuple(map(int, _WATCHED.findall(text)[:MAX_DESCRIPTORS]))
        return AwaitedDescriptors(watched, False)
    return NOTHING_AWAITED


def _polled(pid: int, address: int, count: int) -> tuple[int, ...]:
    """Return the descriptors of a poll that are to be read, from the memory of the process."""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:  # noqa: PTH123 - seeks
        memory.seek(address)
        data = memory.read(count * _POLLED.size)
    entries = _POLLED.iter_unpack(data[: len(data) // _POLLED.size * _POLLED.size])
    return tuple(fd for fd, events, _ in entries if fd >= 0 and events & _POLLIN)
