"""Exceptions that say that a limited resource is used up: which one, and what to do about it.

The phrases are those of the C library for EMFILE, ENFILE, ENOSPC and EDQUOT, which Python, PyTorch and
TensorFlow pass on, and Python's phrase for a thread that could not be started.
"""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath
from typing import NamedTuple

from allaboard.analysis.member_names import command_on_host
from allaboard.facts import Evidence, JobView, Member, Raised
from allaboard.late_pattern import compile_late

_FULL_PATH = compile_late(r"(?:No space left on device|Disk quota exceeded): '(/[^']+)'")
_SHARED_MEMORY = compile_late(r"</torch_|shared memory|\bshm\b|'/dev/shm/")
"""Names that PyTorch gives to a tensor in shared memory."""


class Exhaustion(NamedTuple):
    """A resource that is used up."""

    fix: str
    """What to do about it."""
    evidence: tuple[Evidence, ...] = ()
    """The limit; () if it is not known."""


def find_exhaustion(view: JobView, member: Member, raised: Raised) -> Exhaustion | None:
    """Return which resource the exception says is used up; None if it mentions no limit."""
    message = raised.message
    if "Too many open files in system" in message:
        return Exhaustion(command_on_host(view, member, "cat /proc/sys/fs/file-nr /proc/sys/fs/file-max")
                         + "   # all processes of that host together have too many files open")  # fmt: skip
    if "Too many open files" in message:
        return Exhaustion(_open_files_advice(message), _limit_evidence(raised, "ulimit -n"))
    if "No space left on device" in message:
        return Exhaustion(_disk_space_advice(view, member, raised))
    if "Disk quota exceeded" in message:
        return Exhaustion(
            f"{command_on_host(view, member, 'quota -s')}   # what you may use of {_full_folder(message)}"
        )
    if "can't start new thread" in message:
        return Exhaustion(_thread_limit_advice(view, member), _limit_evidence(raised, "ulimit -u"))
    return None


def _limit_evidence(raised: Raised, command: str) -> tuple[Evidence, ...]:
    return (Evidence(f"its limit is {raised.limit}", command),) if raised.limit > 0 else ()


def _open_files_advice(message: str) -> str:
    raise_limit = "ulimit -n $(ulimit -Hn) before the start raises the limit"
    if _SHARED_MEMORY.search(message):
        share = 'torch.multiprocessing.set_sharing_strategy("file_system")'
        return f"{share}: each tensor from a DataLoader worker takes a descriptor; {raise_limit}"
    return f"close what each step opens (with open(...) as f), make pools and loaders once; {raise_limit}"


def _disk_space_advice(view: JobView, member: Member, raised: Raised) -> str:
    message = raised.message
    # The locks and queues of multiprocessing are semaphores, which are kept there, too.
    is_semaphore = any(f.file.endswith("multiprocessing/synchronize.py") for f in raised.frames)
    if is_semaphore or _SHARED_MEMORY.search(message):
        command = command_on_host(view, member, "df -h /dev/shm")
        return f"{command}   # --shm-size of the container, or fewer DataLoader workers"
    folder = _full_folder(message)
    if not folder:
        return (
            command_on_host(view, member, "df -h; df -i")
            + "   # which is full: bytes, or files (inodes)"
        )
    quoted_folder = shlex.quote(folder)
    command = command_on_host(
        view,
        member,
        f"df -h {quoted_folder}; df -i {quoted_folder}; du -xsh {quoted_folder}/* | sort -h | tail",
    )
    return f"{command}   # keep fewer checkpoints, or write elsewhere"


def _thread_limit_advice(view: JobView, member: Member) -> str:
    command = command_on_host(view, member, "ulimit -u; cat /sys/fs/cgroup/pids.max")
    return f"{command}   # threads count as processes; fewer: OMP_NUM_THREADS, num_workers of DataLoader"


def _full_folder(message: str) -> str:
    match = _FULL_PATH.search(message)
    return str(PurePosixPath(match[1]).parent) if match is not None else ""
