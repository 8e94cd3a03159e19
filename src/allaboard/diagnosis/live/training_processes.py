"""The Python processes of this host that may train, and those that may not be examined by this user."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from allaboard.facts import Socket
from allaboard.hosts import proc, rank_processes
from allaboard.hosts.loaded_framework import has_framework
from allaboard.hosts.process_sockets import network_of, process_sockets

_NUMBER = re.compile(r"(?:^|(?<==))\d{1,6}$")
"""A whole argument, or the value of a flag."""
_CONTAINER = re.compile(r"(docker|kubepods|containerd|crio|libpod|lxc|podman)")
"""In a path of cgroups(7): the names that container engines give theirs."""


class TrainingProcess(NamedTuple):
    """A Python process that has a framework loaded, or a rank in its environment."""

    pid: int
    """Its pid."""
    ppid: int
    """Pid of its parent."""
    started: int
    """When it started, in clock ticks since boot."""
    command: tuple[str, ...]
    """Its command line; it may hold secrets."""
    variables: dict[str, str]
    """What its environment states now, by an allow-list."""
    is_loaded: bool
    """True if it has a framework loaded."""
    sockets: tuple[Socket, ...] = ()
    """Its TCP sockets."""
    network: str = ""
    """The network namespace that it is in."""
    is_parent_python: bool = False
    """True if its parent is a Python process."""


class UnreadableProcess(NamedTuple):
    """A Python process that this user may not examine."""

    pid: int
    """Its pid."""
    user: str
    """Name of its user."""
    command: tuple[str, ...]
    """Its command line; it may hold secrets."""


def read_training_process(pid: int, is_maybe_taken: bool = False) -> TrainingProcess | None:
    """Return what the process is; None if it is no Python process that may train, or may not be read.

    ``is_maybe_taken``: any Python process may train.
    """
    command = proc.command_line(pid)
    stat = proc.read_stat(pid)
    if stat is None or stat.state == "Z" or not rank_processes.is_python(pid, command):
        return None
    is_loaded = has_framework(pid)
    if not is_loaded and rank_processes.rank_identity(pid) is None and not is_maybe_taken:
        return None
    return TrainingProcess(
        pid=pid,
        ppid=stat.ppid,
        started=stat.start_ticks,
        command=tuple(command),
        variables=rank_processes.relevant_environment(pid),
        is_loaded=is_loaded,
        sockets=process_sockets(pid),
        network=network_of(pid),
        is_parent_python=rank_processes.is_python(stat.ppid, proc.command_line(stat.ppid)),
    )


def find_training_processes() -> list[TrainingProcess]:
    """Return the processes that may train on this host; never this one nor one above it.

    A child that has the environment of a rank but no framework is one of its helpers, and is left out. A
    process that has not loaded a framework yet is taken if its command is that of one that has, up to a
    number: a rank that prepares its data before it imports.
    """
    above = rank_processes.ancestors_of(os.getpid())
    pids = (pid for pid in all_pids() if pid not in above)
    candidates = [p for pid in pids if (p := read_training_process(pid, True))]
    loaded = [p for p in candidates if p.is_loaded]
    loaded_pids = {p.pid for p in loaded}
    return [
        p
        for p in candidates
        if p.is_loaded
        or (p.ppid not in loaded_pids and rank_processes.rank_identity(p.pid) is not None)
        or any(differ_in_one_number(p.command, sibling.command) for sibling in loaded)
    ]


def differ_in_one_number(command: Sequence[str], sibling_command: Sequence[str]) -> bool:
    """Return True if two command lines are the same but for one number: those of two ranks, perhaps."""
    pairs = [(a, b) for a, b in zip(command, sibling_command, strict=False) if a != b]
    if len(command) != len(sibling_command) or len(pairs) != 1:
        return False
    ((argument, sibling_argument),) = pairs
    return _NUMBER.sub("", argument) == _NUMBER.sub("", sibling_argument) != argument


def all_pids() -> list[int]:
    """Return the pids of all processes that this one can see."""
    return sorted(int(name) for name in os.listdir("/proc") if name.isdecimal())  # noqa: PTH208


def is_readable(pid: int) -> bool:
    """Return True if this user may read the environment and the memory of the process."""
    try:
        with Path(f"/proc/{pid}/environ").open("rb") as file:
            file.read(1)
    except PermissionError:
        return False
    except OSError:
        return True  # it has gone, which is another matter
    return True


def find_unreadable_processes() -> list[UnreadableProcess]:
    """Return the Python processes of other users that cannot be examined, the newest first."""
    return [
        UnreadableProcess(pid, user_of(pid), tuple(command))
        for pid in reversed(all_pids())
        if not is_readable(pid)
        and (command := proc.command_line(pid))
        and Path(command[0]).name.startswith(("python", "pypy"))
    ]


def user_of(pid: int) -> str:
    """Return the name of the process's user, its number if it has no name here; "" if it has gone."""
    try:
        uid = Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return ""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def is_in_container(pid: int) -> bool:
    """Return True if the process is in a container that this one is not in."""
    try:
        paths = Path(f"/proc/{pid}/cgroup").read_text()
        own_paths = Path("/proc/self/cgroup").read_text()
    except OSError:
        return False
    return paths != own_paths and _CONTAINER.search(paths) is not None
