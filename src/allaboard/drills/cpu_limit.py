"""A control group of its own that leaves a process a part of a core, as a container's limit does."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

PERIOD = 100_000
"""Microseconds: the kernel's default."""


def possible() -> bool:
    """Return True if a control group with a CPU limit can be made here: by root, with the
    controller on."""
    return os.geteuid() == 0 and _top() is not None


def confine(pid: int, cores: float) -> None:
    """Puts the process with all its threads under the limit."""
    top = _top()
    assert top is not None
    group = top / f"allaboard-drill-{pid}"
    group.mkdir(exist_ok=True)
    if (group / "cpu.max").exists():
        (group / "cpu.max").write_text(f"{int(cores * PERIOD)} {PERIOD}")
    else:
        (group / "cpu.cfs_quota_us").write_text(str(int(cores * PERIOD)))
    (group / "cgroup.procs").write_text(str(pid))


def release(pid: int) -> None:
    """Puts it back."""
    top = _top()
    if top is not None and (top / f"allaboard-drill-{pid}").exists():
        (top / "cgroup.procs").write_text(str(pid))


def sweep() -> None:
    """Takes away what is left of groups whose processes have ended or were put back."""
    top = _top()
    for group in top.glob("allaboard-drill-*") if top is not None else ():
        with contextlib.suppress(OSError):  # somebody else's, in use
            group.rmdir()


def _top() -> Path | None:
    root = Path("/sys/fs/cgroup")
    for folder, file in ((root / "cpu", "cpu.cfs_quota_us"), (root, "cpu.max")):
        try:
            probe = folder / f"allaboard-probe-{os.getpid()}"
            probe.mkdir()
        except OSError:
            continue
        found = (probe / file).exists()
        probe.rmdir()
        if found:
            return folder
    return None
