"""How processes end that are not our children: the kernel tells their parent alone.

A pidfd is readable once its process has ended, before the parent has waited for it (pidfd_open(2)); until it
has, /proc shows the status. From Linux 6.15 on the pidfd keeps it for longer (PIDFD_GET_INFO, linux/pidfd.h).
"""

from __future__ import annotations

import fcntl
import os
import select
import struct

from allaboard.hosts import pidfd, proc

_INFO = struct.Struct("=QQ11Ii")
"""struct pidfd_info of its first version: the mask comes first, the status last."""
_GET_INFO = 3 << 30 | _INFO.size << 16 | 0xFF << 8 | 11
_EXIT = 1 << 3


class ExitWatcher:
    """Follows processes by their pids. Its `fileno` is readable once one of them has ended; `take` must
    come soon then."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._pid_by_fd: dict[int, int] = {}
        """File descriptor to pid."""
        self._status_by_pid: dict[int, int] = {}

    def fileno(self) -> int:
        return self._epoll.fileno()

    def follow_process(self, pid: int) -> None:
        """Start to follow a process. Nothing happens if the system does not let us see it."""
        try:
            fd = pidfd.open_process(pid)
        except OSError:
            return
        self._pid_by_fd[fd] = pid
        self._epoll.register(fd, select.EPOLLIN)

    def collect_exits(self) -> None:
        """Read the status of every followed process that has ended."""
        for fd, _ in self._epoll.poll(0):
            pid = self._pid_by_fd.pop(fd)
            self._epoll.unregister(fd)  # a child that was just forked may still have it open
            status = exit_status_of(pid, fd)
            if status is not None:
                self._status_by_pid[pid] = status
            os.close(fd)

    def exit_status(self, pid: int) -> int | None:
        """Return the status as waitpid(2) gives it; None if the process lives, or its end was not
        seen."""
        self.collect_exits()
        return self._status_by_pid.get(pid, proc.wait_status(pid))

    def close(self) -> None:
        for fd in self._pid_by_fd:
            os.close(fd)
        self._pid_by_fd.clear()
        self._epoll.close()


def exit_status_of(pid: int, fd: int) -> int | None:
    """Return how the process of this pidfd has just ended, as waitpid(2) gives it; None if it was
    not seen."""
    status = proc.wait_status(pid)
    return _status_kept_by_pidfd(fd) if status is None else status


def _status_kept_by_pidfd(fd: int) -> int | None:
    """Return the status that the pidfd itself keeps (Linux 6.15 and newer); None on older kernels."""
    try:
        answer = fcntl.ioctl(fd, _GET_INFO, _INFO.pack(_EXIT, *(0,) * 13))
    except OSError:
        return None
    mask, *_, status = _INFO.unpack(answer)
    return int(status) if mask & _EXIT else None
