"""Forks a process and makes it a worker: its session, its streams, its environment, then its program."""

from __future__ import annotations

import ctypes
import os
import signal
from typing import Any, NoReturn

PR_SET_PDEATHSIG = 1
RESET_SIGNALS = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCHLD,
    signal.SIGPIPE,  # Python ignores these two, and what is ignored stays so across exec
    signal.SIGXFSZ,
)
"""Signals that a program expects to find with their default effect."""
WITHHELD = ("ALLABOARD_SECRET",)
"""Variables that agents read and workers need not know: whatever they start could print or log them."""


def fork_with_pipe() -> tuple[int, int, int]:
    """Fork; return both ends of a pipe that the child's exec closes, and the child's pid, 0 in the
    child. Raises OSError."""
    failed, report = os.pipe2(os.O_CLOEXEC)
    try:
        return failed, report, os.fork()
    except OSError:
        os.close(failed)
        os.close(report)
        raise


def exec_worker(message: dict[str, Any], fds: list[int], report: int) -> NoReturn:
    """Become the worker: set its session, output and environment, then exec its program."""
    current_target = ""
    try:
        os.setsid()
        # Here, in the child: a fork does not inherit it, an exec keeps it (prctl(2)).
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        # The pipe is shared with the reaper: a signal that comes before the exec would wake that.
        signal.set_wakeup_fd(-1)
        for number in RESET_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        # dup2 makes copies that an exec leaves open. The originals are above 2, see
        # `reaper.open_standard_streams`.
        for fd, standard in zip(fds, (1, 2), strict=True):
            os.dup2(fd, standard)
            os.close(fd)
        environment = {n: v for n, v in os.environ.items() if n not in WITHHELD}
        environment |= {**message["environment"], "ALLABOARD_PID": str(os.getpid())}
        if message["worker"] < 0:  # no worker: it has no part in the job, as a worker's child
            del environment["ALLABOARD_PID"]
        current_target = message["folder"]
        os.chdir(current_target)
        current_target = message["command"][0]
        os.execvpe(current_target, message["command"], environment)
    # Nothing may leave this frame: the callers are the reaper's, and this is a copy of it.
    except BaseException as error:
        # What was asked for: the error names the last folder of PATH that was tried.
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        os.write(report, f"{current_target}: {reason}".encode(errors="replace")[:4000])
        os._exit(127)
