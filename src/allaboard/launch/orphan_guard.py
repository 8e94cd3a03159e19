"""A process between the agent and the reaper, which ends what both would have ended, should both be killed.

``kill -9`` of the agent and the reaper at once leaves nobody who knows of the workers' children: the workers
die with the reaper (PR_SET_PDEATHSIG), but what is below them would come to init. The guard is the reaper's
parent and a child subreaper (prctl(2)), so it comes to the guard. As long as the reaper lives, the guard does
nothing but wait for it; it imports nothing that the agent had not at its fork.

It signals nothing but its own children. A child's pid cannot be another process's before the guard has waited
for it, and the guard does that only after it has signalled.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from typing import NoReturn

from allaboard.launch.descendants import children_of_this_process, stat_fields

PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36
IGNORED_SIGNALS = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,  # Slurm's --signal reaches every process of a step
    signal.SIGUSR2,
)
"""Signals that a terminal or a batch system sends to all processes of a job; the reaper ignores them too."""
SWEEP_INTERVAL_S = 0.02
"""Time between two looks for what is left."""
UNKILLABLE_WAIT_S = 10.0
"""How long a process that SIGKILL does not end is waited for."""
GUARD_TITLE = "job guard: ends what is left of the job of pid {agent}"
REAPER_TITLE = "job reaper: ends the processes of the job of pid {agent}"
"""What ps(1) shows. None has a word of the agent's command line: one `pkill -f` must not hit all three."""
_ARG_START, _ARG_END = 45, 46
"""Places of arg_start and arg_end in /proc/PID/stat behind the command's name, see proc(5)."""


def live_as_guard(reaper: int, agent: int, folder: str) -> NoReturn:
    """Wait until the reaper has ended; if it was killed, end all that is below this process.

    ``folder`` are the black boxes, which are removed if the agent is gone too.
    """
    code = 1
    try:
        for number in IGNORED_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        show_title(GUARD_TITLE.format(agent=agent), "job-guard")
        if not _ended_well(reaper):
            _end_descendants()
            # The agent that lives on reads the black boxes, and removes them itself.
            while os.getppid() == agent:
                time.sleep(SWEEP_INTERVAL_S)
            remove_flat_folder(folder)
        code = 0
    finally:
        # Never back: the frames above are the agent's.
        os._exit(code)


def become_subreaper() -> None:
    """Become the parent of all orphans below this process."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def show_title(title: str, name: str) -> None:
    """Show this title in place of the command line that this fork has from the agent, and the name in
    ps -e. Nothing depends on it, so nothing is raised."""
    try:
        ctypes.CDLL(None).prctl(PR_SET_NAME, ctypes.create_string_buffer(name.encode()), 0, 0, 0)
        fields = stat_fields(os.getpid())
        start, end = int(fields[_ARG_START]), int(fields[_ARG_END])
        if start and end - start > 1:
            # The memory is this fork's own; a last byte of zero tells the kernel that the title fits.
            text = title.encode()[: end - start - 1].ljust(end - start, b"\0")
            ctypes.memmove(start, text, len(text))
    except (OSError, ValueError, IndexError):
        pass


def remove_flat_folder(folder: str) -> None:
    """Remove a folder of files, if it is still there."""
    try:
        for name in os.listdir(folder):  # noqa: PTH208 - pathlib would cost the import
            os.unlink(f"{folder}/{name}")  # noqa: PTH108
        os.rmdir(folder)  # noqa: PTH106
    except OSError:
        pass


def _ended_well(reaper: int) -> bool:
    """Wait for the reaper; return True if it ended by itself, having ended what it had to."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == reaper:
            return os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0


def _end_descendants() -> None:
    """Kill children until there are none: what was below them comes to this process, and is next."""
    deadline = time.monotonic() + UNKILLABLE_WAIT_S
    while time.monotonic() < deadline:
        for pid in children_of_this_process():
            with contextlib.suppress(OSError):  # a program of another user (sudo)
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        except ChildProcessError:
            return
        time.sleep(SWEEP_INTERVAL_S)
