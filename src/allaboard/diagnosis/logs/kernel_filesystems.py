"""Folders of the kernel (/proc, /sys): no job left them, and reading them has no end."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

KERNEL_ROOTS = ("/proc", "/sys")


def is_kernel_path(path: str | Path) -> bool:
    """Return True if this folder or regular file is the kernel's, by whatever link it was reached.

    A pipe that only passes through /proc (process substitution) is not.
    """
    real = os.path.realpath(path)
    is_named = real in KERNEL_ROOTS or real.startswith(tuple(f"{root}/" for root in KERNEL_ROOTS))
    try:
        # By the device: a bind mount of /proc has another path.
        is_mounted = os.stat(real).st_dev in _devices()  # noqa: PTH116 - also asked for each folder of a walk
    except OSError:
        is_mounted = False
    return is_mounted or (is_named and (Path(path).is_dir() or Path(path).is_file()))


def why_not_read(path: Path) -> str:
    """Return the message for a path of the kernel."""
    parts = Path(os.path.realpath(path)).parts
    pid = parts[2] if len(parts) > 2 and parts[1] == "proc" and parts[2].isdecimal() else "PID"
    return (
        f"{path}: the kernel's own files, which no job left; to look at a process that runs: "
        f"allaboard diagnose {pid}"
    )


@cache
def _devices() -> frozenset[int]:
    devices = set()
    for root in KERNEL_ROOTS:
        try:
            devices.add(os.stat(root).st_dev)  # noqa: PTH116 - as above
        except OSError:
            continue
    return frozenset(devices)
