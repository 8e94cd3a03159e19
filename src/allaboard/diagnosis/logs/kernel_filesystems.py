"""Folders that are the kernel's own (/proc, /sys): no job left them, and reading them has no end."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

OWN = ("/proc", "/sys")


def of_the_kernel(path: str | Path) -> bool:
    """Whether this folder or regular file is one of them, whatever leads there; a pipe that only passes
    through is none."""
    real = os.path.realpath(path)
    named = real in OWN or real.startswith(tuple(f"{own}/" for own in OWN))
    try:
        mounted = os.stat(real).st_dev in _devices()  # noqa: PTH116 - also asked for each folder of a walk
    except OSError:
        mounted = False
    return mounted or (named and (Path(path).is_dir() or Path(path).is_file()))


def why_not(path: Path) -> str:
    """What to say of a path that is one of them."""
    words = Path(os.path.realpath(path)).parts
    pid = words[2] if len(words) > 2 and words[1] == "proc" and words[2].isdigit() else "PID"
    return (
        f"{path}: the kernel's own files, which no job left; to look at a process that runs: "
        f"allaboard diagnose {pid}"
    )


@cache
def _devices() -> frozenset[int]:
    found = set()
    for own in OWN:
        try:
            found.add(os.stat(own).st_dev)  # noqa: PTH116 - as above
        except OSError:
            continue
    return frozenset(found)
