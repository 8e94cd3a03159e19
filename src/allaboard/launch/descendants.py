"""The processes below one process, as /proc shows them. For the reaper and its guard, which import little."""

from __future__ import annotations

import os


def stat_fields(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat behind the command's name: state, parent, and so on."""
    with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
        return file.read().rpartition(b")")[2].split()


def has_ended(pid: int) -> bool:
    """Return True if this process is a zombie, or dead. Raises OSError if it is gone."""
    return stat_fields(pid)[0] in (b"Z", b"X")


def children_of_this_process() -> list[int]:
    """Return the children of this process, those that have ended included."""
    children = []
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdecimal():
            try:
                if int(stat_fields(int(name))[1]) == os.getpid():
                    children.append(int(name))
            except (OSError, IndexError):
                continue  # it has ended meanwhile
    return children


def pids_below(root: int, keep: frozenset[int] = frozenset()) -> list[int]:
    """Return every process below ``root``, by the parents that /proc shows. Leave out those to keep, and
    what is below them."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib would cost the import
        if name.isdecimal():
            try:
                parent = int(stat_fields(int(name))[1])
            except OSError:
                continue
            parents.setdefault(parent, []).append(int(name))
    pids, queue = [], list(parents.get(root, ()))
    while queue:
        pid = queue.pop()
        if pid in keep:
            continue
        pids.append(pid)
        queue += parents.pop(pid, ())  # popped: a pid reused between two reads closes no circle
    return pids


def first_of_each_session(pids: list[int]) -> list[int]:
    """Return one of these processes, which has not ended, for each of their sessions."""
    first_pids: dict[int, int] = {}
    for pid in pids:
        try:
            if not has_ended(pid):
                first_pids.setdefault(os.getsid(pid), pid)
        except OSError:
            continue  # gone meanwhile
    return list(first_pids.values())


def has_children() -> bool:
    """Return True if this process has a child, ended or not."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def file_identity(path_or_fd: int | str) -> tuple[int, int]:
    """Return device and inode of an open file, the same for all processes that share it; zeros if it is
    gone."""
    try:
        file_stat = os.stat(path_or_fd)  # noqa: PTH116
    except OSError:
        return 0, 0
    return file_stat.st_dev, file_stat.st_ino
