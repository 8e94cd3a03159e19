"""The system call that a process is blocked in, and the file: from /proc alone (proc(5)).

Numbers of system calls are those of the kernel's tables for x86-64 and for the others, which share
one (arm64, riscv64). Nothing is opened on the file system in question, which may be the one that
hangs.
"""

from __future__ import annotations

import platform
from pathlib import Path

from allaboard.hosts.mounts import mount_of

_FD_X86 = {0: "read", 1: "write", 5: "fstat", 17: "pread", 18: "pwrite", 19: "readv", 20: "writev",
           73: "flock", 74: "fsync", 75: "fdatasync", 77: "ftruncate", 78: "getdents",
           217: "getdents"}  # fmt: skip
_PATH_X86 = {2: "open", 4: "stat", 6: "lstat", 21: "access", 59: "execve", 82: "rename",
             83: "mkdir", 87: "unlink"}  # fmt: skip
_AT_X86 = {257: "openat", 262: "stat", 263: "unlinkat", 332: "statx"}
_CLONE_X86 = (56, 58, 435)
_FD_GENERIC = {63: "read", 64: "write", 67: "pread", 68: "pwrite", 65: "readv", 66: "writev",
               32: "flock", 82: "fsync", 83: "fdatasync", 46: "ftruncate", 61: "getdents",
               80: "fstat"}  # fmt: skip
_AT_GENERIC = {56: "openat", 79: "stat", 35: "unlinkat", 291: "statx"}
_CLONE_GENERIC = (220, 435)
PATH_MAX = 4096
"""Bytes of a path, PATH_MAX."""


def describe_blocked_syscall(pid: int) -> str:
    """Return for example ``write to /data/log on /data (nfs4 of server:/data)``; "" if it cannot be
    seen."""
    try:
        fields = Path(f"/proc/{pid}/syscall").read_text().split()
        number, arguments = int(fields[0]), [int(w, 16) for w in fields[1:7]]
    except (OSError, ValueError, IndexError):
        return ""  # it runs, or the kernel does not tell us
    x86 = platform.machine() == "x86_64"
    by_fd, by_relative_path = (_FD_X86, _AT_X86) if x86 else (_FD_GENERIC, _AT_GENERIC)
    if number in (_CLONE_X86 if x86 else _CLONE_GENERIC):
        return "starting a program, whose file has not been read yet"
    if number in by_fd:
        return _describe_call(pid, by_fd[number], _path_of_descriptor(pid, arguments[0]))
    if number in by_relative_path:
        return _describe_call(pid, by_relative_path[number], _path_in_memory(pid, arguments[1]))
    if x86 and number in _PATH_X86:
        return _describe_call(pid, _PATH_X86[number], _path_in_memory(pid, arguments[0]))
    return ""


def path_of_open(pid: int) -> str:
    """Return the file that the main thread is inside open(2) or openat(2) of; "" if it is in another call."""
    try:
        fields = Path(f"/proc/{pid}/syscall").read_text().split()
        number, arguments = int(fields[0]), [int(w, 16) for w in fields[1:7]]
    except (OSError, ValueError, IndexError):
        return ""
    x86 = platform.machine() == "x86_64"
    if (_AT_X86 if x86 else _AT_GENERIC).get(number) == "openat":
        return _path_in_memory(pid, arguments[1])
    return _path_in_memory(pid, arguments[0]) if x86 and _PATH_X86.get(number) == "open" else ""


def _describe_call(pid: int, call: str, file: str) -> str:
    if not file:
        return call
    if not file.startswith("/"):
        return f"{call} of {file}"
    mount = mount_of(file, str(pid))
    if mount is None:
        return f"{call} of {file}"
    return f"{call} of {file} on {mount.point} ({mount.filesystem} of {mount.source})"


def _path_of_descriptor(pid: int, fd: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/fd/{fd}").readlink())
    except OSError:
        return ""


def _path_in_memory(pid: int, address: int) -> str:
    """Return the path at this address in the memory of the process, made absolute; "" if it cannot
    be read."""
    try:
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:  # noqa: PTH123 - seeks
            memory.seek(address)
            path = memory.read(PATH_MAX).partition(b"\0")[0].decode("utf-8", "replace")
        if path and not path.startswith("/"):
            return str(Path(f"/proc/{pid}/cwd").readlink() / path)
    except (OSError, OverflowError, ValueError):
        return ""
    return path
