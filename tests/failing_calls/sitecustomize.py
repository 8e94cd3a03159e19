"""Makes system calls of the agent fail: loaded by its interpreter because this folder is on PYTHONPATH.

``FAILING_CALLS`` in its environment is JSON: ``log``, a file to which each place that makes a call is
appended when it is met for the first time; ``place``, the one whose calls fail ("" for none); ``skip``, how
many of its calls succeed before; and ``is_lasting``, if all later ones fail and not only the next one. A
place is the call and the function of allaboard that leads to it: ``open agent/journal.py:__init__``.

Python reports most calls to audit hooks (PEP 578), which may raise; those that it does not report are
replaced in their modules. Both live on in what the agent forks (reaper and guard) until it becomes a program.
Workers know nothing of this: the variable and the folder are taken out of the environment at once. Left out
is what the interpreter itself does, above all to import modules.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

PACKAGE = os.sep + "allaboard" + os.sep
AUDITED = {
    "open": errno.EMFILE,
    "os.mkdir": errno.ENOSPC,
    "os.rename": errno.EACCES,
    "os.remove": errno.EACCES,
    "os.rmdir": errno.EACCES,
    "os.link": errno.EACCES,
    "os.symlink": errno.EACCES,
    "os.listdir": errno.EACCES,
    "os.scandir": errno.EACCES,
    "os.chdir": errno.EACCES,
    "os.chmod": errno.EPERM,
    "os.truncate": errno.ENOSPC,
    "os.fork": errno.EAGAIN,
    "os.posix_spawn": errno.EAGAIN,
    "os.exec": errno.EACCES,
    "os.kill": errno.EPERM,
    "os.killpg": errno.EPERM,
    "subprocess.Popen": errno.EAGAIN,
    "socket.__new__": errno.EMFILE,
    "socket.bind": errno.EACCES,
    "socket.connect": errno.ENETUNREACH,
    "socket.getaddrinfo": errno.EAGAIN,
    "socket.gethostbyname": errno.EAGAIN,
    "socket.sendmsg": errno.ENOBUFS,
    "socket.sendto": errno.ENOBUFS,
    "fcntl.fcntl": errno.EINVAL,
    "fcntl.flock": errno.ENOLCK,
    "fcntl.ioctl": errno.ENOTTY,
    "mmap.__new__": errno.ENOMEM,
    "resource.setrlimit": errno.EPERM,
}
"""Audit events, and the error with which the call behind each of them fails."""
IN_OS = {
    "read": errno.EIO,
    "write": errno.ENOSPC,
    "pread": errno.EIO,
    "pwrite": errno.ENOSPC,
    "pipe": errno.EMFILE,
    "pipe2": errno.EMFILE,
    "dup": errno.EMFILE,
    "dup2": errno.EMFILE,
    "stat": errno.EIO,
    "lstat": errno.EIO,
    "fstat": errno.EIO,
    "statvfs": errno.EIO,
    "readlink": errno.EACCES,
    "replace": errno.EACCES,
    "mkfifo": errno.EPERM,
    "fsync": errno.EIO,
    "fdatasync": errno.EIO,
    "ftruncate": errno.ENOSPC,
    "fchmod": errno.EPERM,
    "memfd_create": errno.EMFILE,
    "eventfd": errno.EMFILE,
    "pidfd_open": errno.EMFILE,
    "openpty": errno.ENOSPC,
    "setsid": errno.EPERM,
    "sched_getaffinity": errno.EPERM,
    "getcwd": errno.ENOENT,
}
IN_SOCKETS = {
    "send": errno.ENOBUFS,
    "sendall": errno.ENOBUFS,
    "recv": errno.ECONNRESET,
    "recvmsg": errno.ECONNRESET,
    "sendmsg": errno.ECONNRESET,
    "accept": errno.EMFILE,
    "listen": errno.EADDRINUSE,
    "setsockopt": errno.ENOPROTOOPT,
    "getsockname": errno.ENOBUFS,
}
INTERPRETER = ("<frozen importlib", "<frozen zipimport", "/linecache.py")
"""Beginnings or ends of the names of files whose calls are the interpreter's own."""
SELF_PIPE = ("_read_from_self", "_write_to_self", "_make_self_pipe")
"""Functions of asyncio whose socket pair nothing can break."""


class Injector:
    """Counts the calls of each place, and says which of them fail."""

    def __init__(self, log: str, place: str, skip: int, is_lasting: bool) -> None:
        self.place, self.skip, self.is_lasting = place, skip, is_lasting
        self.counts: dict[str, int] = {}
        self.is_busy = False
        self.write, self.log = os.write, os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def must_fail(self, call: str) -> bool:
        """Note one call; return True if it is to fail."""
        if self.is_busy:
            return False
        self.is_busy = True
        try:
            place = self._place(call)
            if not place:
                return False
            count = self.counts[place] = self.counts.get(place, 0) + 1
            if count == 1:
                self._note(place)
            fails = place == self.place and (
                count > self.skip if self.is_lasting else count == self.skip + 1
            )
            if fails and count == self.skip + 1:
                self._note(f"failed {place}")
            return fails
        finally:
            self.is_busy = False

    def _note(self, line: str) -> None:
        try:
            self.write(self.log, f"{line}\n".encode())
        except OSError:  # closed in a child that is about to become a program
            pass

    def _place(self, call: str) -> str:
        frame = sys._getframe(3)
        if frame.f_code.co_name in SELF_PIPE:
            return ""
        while frame is not None:
            name = frame.f_code.co_filename
            if name.startswith(INTERPRETER[:2]) or name.endswith(INTERPRETER[2]):
                return ""
            if PACKAGE in name and "site-packages" not in name:
                return f"{call} {name.rpartition(PACKAGE)[2]}:{frame.f_code.co_name}"
            frame = frame.f_back  # type: ignore[assignment]
        return ""


def install(injector: Injector) -> None:
    """Have the injector asked before each call."""
    import select
    import threading

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        number = AUDITED.get(event)
        if number is None or not injector.must_fail(event):
            return
        if event == "socket.getaddrinfo":
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        shown = arguments[:1] if event.startswith(("open", "os.")) and arguments else ()
        raise OSError(number, os.strerror(number), *(a for a in shown if isinstance(a, str)))

    def replaced(call: str, original: Callable[..., Any], error: Exception) -> Callable[..., Any]:
        def replacement(*arguments: Any, **named: Any) -> Any:
            if injector.must_fail(call):
                raise error
            return original(*arguments, **named)

        return replacement

    def os_error(number: int) -> OSError:
        return OSError(number, os.strerror(number))

    for name, number in IN_OS.items():
        setattr(os, name, replaced(f"os.{name}", getattr(os, name), os_error(number)))
    for name, number in IN_SOCKETS.items():
        original = getattr(socket.socket, name)
        setattr(socket.socket, name, replaced(f"socket.{name}", original, os_error(number)))
    select.epoll = replaced("select.epoll", select.epoll, os_error(errno.EMFILE))  # type: ignore
    start = threading._start_new_thread  # type: ignore[attr-defined]
    no_thread = RuntimeError("can't start new thread")
    threading._start_new_thread = replaced("thread", start, no_thread)  # type: ignore[attr-defined]
    sys.addaudithook(audit)


HERE = str(Path(__file__).resolve().parent)
SETTINGS = os.environ.pop("FAILING_CALLS", "")
os.environ["PYTHONPATH"] = os.pathsep.join(
    p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p != HERE
)
sys.path[:] = [p for p in sys.path if p != HERE]
if SETTINGS:
    install(Injector(**json.loads(SETTINGS)))
