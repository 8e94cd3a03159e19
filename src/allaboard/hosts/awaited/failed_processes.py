"""Processes of a program that have failed and that nobody has waited for: the kernel keeps how they ended."""

from __future__ import annotations

import os

from allaboard.hosts import proc

_KILL_SIGNALS = (4, 6, 7, 8, 9, 11)
"""Signals that end a process which nobody asked to: SIGKILL, and crashes."""
MAX_PROCESSES = 8
"""Failed processes that are returned."""


def failed_processes(pid: int, below: dict[int, proc.ProcStat]) -> tuple[tuple[int, int], ...]:
    """Return the children of this process that failed and have not been waited for, with exit
    code or, below 0, signal; also those of its parent, if that started it with multiprocessing."""
    parents = {pid: below}
    own_stat = proc.read_stat(pid)
    if own_stat is not None and _is_started_by_program(pid, own_stat.ppid):
        parents[own_stat.ppid] = proc.descendants_of(own_stat.ppid)
    zombies = (
        (child, proc.wait_status(child))
        for parent, processes in parents.items()
        for child, child_stat in processes.items()
        if child_stat.ppid == parent and child_stat.state == "Z" and proc.count_threads(child) < 2
    )
    codes = ((c, os.waitstatus_to_exitcode(s)) for c, s in zombies if s is not None)
    return tuple((c, code) for c, code in codes if code > 0 or -code in _KILL_SIGNALS)[
        :MAX_PROCESSES
    ]


def _is_started_by_program(pid: int, parent: int) -> bool:
    """Return True if multiprocessing started the process for its parent: by its own command, or by fork."""
    command = proc.command_line(pid)
    is_spawned = any("multiprocessing.spawn" in part for part in command)
    return bool(command) and (is_spawned or command == proc.command_line(parent))
