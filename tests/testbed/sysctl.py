"""The few calls of the kernel that Python 3.11 has no function for."""

from __future__ import annotations

import ctypes
import os

NEW_TIME, NEW_MOUNTS, NEW_UTS = 0x80, 0x20000, 0x4000000
NEW_IPC, NEW_PIDS, NEW_NET = 0x8000000, 0x20000000, 0x40000000

BIND, MOVE, RECURSIVE, PRIVATE = 0x1000, 0x2000, 0x4000, 0x40000
READ_ONLY, REMOUNT = 0x1, 0x20

_DEATH_SIGNAL = 1

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def unshare(kinds: int) -> None:
    """Own namespaces of these kinds: for this process, or for its children (processes, time)."""
    _checked(_libc.unshare(kinds), "unshare")


def enter(namespace: str) -> None:
    """Goes over into the namespace of this path, e.g. ``/proc/12/ns/net``."""
    descriptor = os.open(namespace, os.O_RDONLY)
    try:
        _checked(_libc.setns(descriptor, 0), namespace)
    finally:
        os.close(descriptor)


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """mount(2). Raises OSError with the target."""
    words = (source.encode(), target.encode(), kind.encode() or None)
    _checked(_libc.mount(*words, ctypes.c_ulong(flags), options.encode() or None), target)


def die_with_parent(signal: int) -> None:
    """The kernel sends this signal once the parent is gone."""
    _checked(_libc.prctl(_DEATH_SIGNAL, signal, 0, 0, 0), "prctl")
