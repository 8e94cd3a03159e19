"""What to do about a process that a signal ended, if only its number is known."""

from __future__ import annotations

import re
import signal

FATAL_ERROR = "Fatal Python error: "
"""Begins the last line of a process whose stack faulthandler wrote."""
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
    place = _PLACE.search(last_line) if last_line.startswith(FATAL_ERROR) else None
    return place[1] if place is not None else ""


def crash_advice(place: str) -> str:
    """Return the next step after a crash in native code below this line of Python."""
    return (
        f"look at what {place} calls: native code below it crashed   # its input, or a library that was "
        "built for another version; ulimit -c unlimited, then gdb -batch -ex bt PYTHON CORE"
    )


def signal_advice(number: int) -> str:
    """Return the next step after a process was ended by the signal of this number."""
    return next((text for s, text in _ADVICE.items() if s == number), _ASK)
