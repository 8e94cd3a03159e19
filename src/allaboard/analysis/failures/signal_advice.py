"""What to do about a process that a signal ended, if only its number is known."""

from __future__ import annotations

import signal

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


def signal_advice(number: int) -> str:
    """Return the next step after a process was ended by the signal of this number."""
    return next((text for s, text in _ADVICE.items() if s == number), _ASK)
