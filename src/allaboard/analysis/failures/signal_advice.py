"""What to do about a process that ended, if only the number of a signal or an exit code is known."""

from __future__ import annotations

import re
import signal
from typing import NamedTuple

from allaboard.formats.dumps.thread_dumps.faulthandler import FATAL_ERROR

_PLACE = re.compile(r", (\S.* in \S+)$")
_CRASH = "PYTHONFAULTHANDLER=1 shows the line that it was at; ulimit -c unlimited leaves a core"
_ASK = "ask who ended it: the batch system (sacct, kubectl describe pod), a preempted machine, or a person"
_ADVICE = {
    signal.SIGKILL: "on its host: dmesg -T | grep -i 'killed process'; then ask the batch system who did it",
    # Writing to a full tmpfs that is mapped gives SIGBUS: DataLoader's workers and NCCL do that.
    signal.SIGBUS: "on its host, in its container: df -h /dev/shm   # full? docker run --shm-size=8g or "
    "--ipc=host, in Kubernetes an emptyDir of medium Memory at /dev/shm; else a mapped file was cut short",
    signal.SIGILL: "lscpu | grep Flags   # on its host: the build may need instructions that its CPU lacks",
    signal.SIGABRT: "read its output before this line: who aborts says why; PYTHONFAULTHANDLER=1 shows where",
    signal.SIGHUP: "its terminal was closed: start it in a batch job, in tmux, or with nohup setsid",
    signal.SIGINT: "nothing is wrong in your code, if a person pressed Ctrl-C",
    signal.SIGTERM: _ASK,
    signal.SIGSEGV: _CRASH,
    signal.SIGFPE: _CRASH,
}


def crash_place(last_line: str) -> str:
    """Return the place in faulthandler's report of a crash; "" if it has none."""
    match = _PLACE.search(last_line) if last_line.startswith(FATAL_ERROR) else None
    return match[1] if match is not None else ""


def crash_advice(place: str) -> str:
    """Return the next step after a crash in native code below this line of Python."""
    return (
        f"look at what {place} calls: native code below it crashed   # its input, or a library that was "
        "built for another version; ulimit -c unlimited, then gdb -batch -ex bt PYTHON CORE"
    )


def unhandled_signal_advice(name: str) -> str:
    """Return the next step after SIGUSR1 or SIGUSR2 ended a program that has no handler for it."""
    return (
        f"signal.signal(signal.{name}, save)   # in the script; or find out who sends it: "
        "Slurm's --signal, a person (allaboard forwards the signals that it receives)"
    )


def signal_advice(number: int) -> str:
    """Return the next step after a process was ended by the signal of this number."""
    return next((text for s, text in _ADVICE.items() if s == number), _ASK)


# Of Windows: an NTSTATUS of an exception that nothing handled.
_WINDOWS_CRASH = (
    "set PYTHONFAULTHANDLER=1, and start it again: it shows the line of Python that crashed"
)
_LIBRARIES = (
    'a DLL is missing or does not fit: run `where nvcuda.dll` and python -c "import torch" in this '
    "environment; install the build of PyTorch for this CUDA, and the Visual C++ redistributable"
)


class WindowsStatus(NamedTuple):
    """What an exit code of a process means on Windows."""

    name: str
    """Its meaning, with the code in the form in which documents have it."""
    fix: str
    """What to do next."""


# From ntstatus.h; the names as Windows writes them to its event log.
_STATUS = {
    0xC0000005: WindowsStatus("0xC0000005: access violation", _WINDOWS_CRASH),
    0xC0000006: WindowsStatus(
        "0xC0000006: a page could not be read", "chkdsk; wmic diskdrive get status   # on its host"
    ),
    0xC0000017: WindowsStatus(
        "0xC0000017: no memory", "raise the page file, or start fewer processes: each imports CUDA"
    ),
    0xC000001D: WindowsStatus("0xC000001D: illegal instruction", _WINDOWS_CRASH),
    0xC00000FD: WindowsStatus("0xC00000FD: stack overflow", _WINDOWS_CRASH),
    0xC0000135: WindowsStatus("0xC0000135: a DLL was not found", _LIBRARIES),
    0xC0000139: WindowsStatus("0xC0000139: a DLL lacks a function", _LIBRARIES),
    0xC000013A: WindowsStatus(
        "0xC000013A: ended by Ctrl-C, or its window was closed",
        "nothing is wrong in your code, if a person did it",
    ),
    0xC0000142: WindowsStatus("0xC0000142: a DLL could not be initialized", _LIBRARIES),
    0xC0000374: WindowsStatus("0xC0000374: the heap is corrupted", _WINDOWS_CRASH),
    0xC0000409: WindowsStatus("0xC0000409: aborted, or a buffer overran its stack", _WINDOWS_CRASH),
}
_WORD = 1 << 32


def windows_status(code: int | None) -> WindowsStatus | None:
    """Return what the exit code of a process means if it is one of Windows', as a number with or without a
    sign; else None."""
    return _STATUS.get(code % _WORD) if code is not None else None
