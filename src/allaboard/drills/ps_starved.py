"""Other programs take the one core that a parameter server of a TensorFlow 1 job may run on."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from allaboard.contracts import Drill

HUNGRY = """
import os, sys
core, server = sys.argv[1:]
os.sched_setaffinity(0, {int(core)})
while os.path.exists("/proc/" + server):
    for _ in range(1_000_000):
        pass
"""
"""It ends with the server, whatever becomes of the drill."""
_others: list[subprocess.Popen[bytes]] = []


def crowd(pid: int) -> None:
    core = min(os.sched_getaffinity(pid))
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it has just ended
            os.sched_setaffinity(int(thread.name), {core})
    words = [sys.executable, "-c", HUNGRY, str(core), str(pid)]
    # Sessions of their own: the kernel shares a core between sessions first (sched(7), autogroup).
    _others.extend(subprocess.Popen(words, start_new_session=True) for _ in range(8))


def leave(pid: int) -> None:
    while _others:
        one = _others.pop()
        one.kill()
        one.wait()


DRILL = Drill(
    script="tf1_ps.py",
    expects="PS015",
    workers=2,
    guilty=2,
    trains=0,
    options=("--ps", "1"),
    arguments=("--pause", "0"),
    outside=crowd,
    heal=leave,
    ends=False,
)
