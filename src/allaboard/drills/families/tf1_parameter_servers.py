"""Faults in TensorFlow 1 jobs with parameter servers."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

from allaboard.contracts import Drill
from allaboard.drills import cpu_limit
from allaboard.drills.base_rows import lasting_drill
from allaboard.launch.signals import continue_process, kill_process, stop_process


def starve(pid: int) -> None:
    cpu_limit.confine(pid, 0.05)


HUNGRY = """
import os, sys
core, server = sys.argv[1:]
os.sched_setaffinity(0, {int(core)})
while os.path.exists("/proc/" + server):
    for _ in range(1_000_000):
        pass
"""
"""It ends with the server, whatever becomes of the drill."""

_competitors: list[subprocess.Popen[bytes]] = []


def crowd(pid: int) -> None:
    core = min(os.sched_getaffinity(pid))
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it has just ended
            os.sched_setaffinity(int(thread.name), {core})
    words = [sys.executable, "-c", HUNGRY, str(core), str(pid)]
    # Sessions of their own: the kernel shares a core between sessions first (sched(7), autogroup).
    _competitors.extend(subprocess.Popen(words, start_new_session=True) for _ in range(8))


def leave(pid: int) -> None:
    while _competitors:
        competitor = _competitors.pop()
        competitor.kill()
        competitor.wait()


ps_drill = partial(Drill, script="tf1_ps.py", workers=2, options=("--ps", "1"))

DRILLS = {
    "ps-dies-at-start": ps_drill(
        title=(
            "A parameter server raises before it creates its Server; worker 0, the chief, is held "
            "at the roll call"
        ),
        expects="JOIN003",
        guilty=2,
        inside=True,
        fault="dies",
        exit_codes=(3,),
        # Where the chief takes long to come, the exception is reported before it is here.
        allowed=("EXIT002",),
        long="dies-before-init shows the same without servers",
    ),
    "ps-hidden": lasting_drill(
        title="device_filters of one worker's session leave out the second of two parameter servers",
        script="tf1_ps.py",
        expects="PS013",
        workers=2,
        guilty=1,
        options=("--ps", "2"),
        fault="hides",
        exit_codes=(0, 1, 143),
        allowed=("EXIT002",),
        long="it fails at once in any case",
    ),
    "ps-killed": ps_drill(
        title=(
            "A parameter server of a TensorFlow 1 job is killed by SIGKILL; its workers would hang "
            "without a message"
        ),
        expects="PS001",
        guilty=2,
        trains=0,
        outside=kill_process,
    ),
    "ps-leaves-early": ps_drill(
        title=(
            "A worker of an asynchronous TensorFlow 1 job reaches the end of its data after forty steps"
        ),
        expects="PS012",
        guilty=1,
        inside=True,
        fault="leaves",
        ends=False,
        long="the others have to train on for a while",
    ),
    "ps-missing": lasting_drill(
        title="A parameter server sleeps before it creates its Server, under --observe",
        script="tf1_ps.py",
        expects="PS003",
        workers=2,
        guilty=2,
        options=("--ps", "1", "--observe"),
        fault="asleep",
    ),
    "ps-no-chief": lasting_drill(
        title=(
            "The chief of a TensorFlow 1 job sleeps before it creates its Server, so the variables "
            "are not initialised"
        ),
        script="tf1_ps.py",
        expects="PS002",
        workers=1,
        guilty=0,
        options=("--ps", "1", "--chief"),
        fault="asleep",
    ),
    "ps-other-port": ps_drill(
        title="A parameter server listens on another port than the one in the other tasks' cluster",
        expects="JOIN007",
        guilty=2,
        inside=True,
        fault="other-port",
        exit_codes=(3,),
    ),
    "ps-returns": ps_drill(
        title="The `ps` branch of a TensorFlow 1 script returns instead of serving forever",
        expects="PS001",
        guilty=2,
        inside=True,
        fault="returns",
        ends=False,
    ),
    "ps-saturated": ps_drill(
        title=(
            "A parameter server of a TensorFlow 1 job is limited to a twentieth of a core, as by a "
            "container"
        ),
        expects="PS005",
        guilty=2,
        trains=0,
        arguments=("--pause", "0"),
        outside=starve,
        heal=cpu_limit.release,
        ends=False,
        needs=("cgroup-cpu",),
    ),
    "ps-starved": ps_drill(
        title=(
            "Other programs use the only core on which a parameter server of a TensorFlow 1 job may run"
        ),
        expects="PS015",
        guilty=2,
        trains=0,
        arguments=("--pause", "0"),
        outside=crowd,
        heal=leave,
        ends=False,
    ),
    "ps-stopped": Drill(
        title=(
            "A parameter server of a TensorFlow 1 job is stopped by SIGSTOP; its workers hang in "
            "Session.run"
        ),
        script="tf1_ps.py",
        expects="HANG001",
        workers=2,
        guilty=2,
        trains=0,
        options=("--ps", "1", "--on-hang", "stop"),
        outside=stop_process,
        heal=continue_process,
        exit_codes=(4,),
    ),
    "ps-sync-absent": lasting_drill(
        title=(
            "A worker of a synchronous job never starts; under --observe the others continue at a "
            "lower rate"
        ),
        script="tf1_ps.py",
        expects="PS004",
        workers=2,
        guilty=1,
        options=("--ps", "1", "--observe"),
        arguments=("--sync",),
        fault="asleep",
    ),
    "ps-sync-killed": ps_drill(
        title="A worker of a synchronous job is killed by SIGKILL; the chief waits for its gradient",
        expects="EXIT001",
        guilty=1,
        trains=0,
        outside=kill_process,
        arguments=("--sync",),
    ),
    "ps-sync-slow": ps_drill(
        title=(
            "A worker of a synchronous TensorFlow 1 job reads its data slowly; the other one "
            "waits in every step"
        ),
        expects="PS011",
        guilty=1,
        arguments=("--sync",),
        inside=True,
        fault="slow",
        ends=False,
    ),
    "ps-sync-stopped": Drill(
        title=(
            "A worker of a synchronous job is stopped by SIGSTOP; the other waits for its gradient"
        ),
        script="tf1_ps.py",
        expects="HANG001",
        workers=2,
        guilty=1,
        trains=0,
        options=("--ps", "1", "--on-hang", "stop"),
        outside=stop_process,
        heal=continue_process,
        arguments=("--sync",),
        exit_codes=(4,),
    ),
    "ps-uneven": Drill(
        title="One large variable puts nearly all bytes on one of two parameter servers",
        script="tf1_ps.py",
        expects="PS006",
        workers=1,
        guilty=-1,
        options=("--ps", "2"),
        arguments=("--width", "20000"),
        ends=False,
    ),
    "ps-without": Drill(
        title=(
            "TensorFlow 1 workers use replica_device_setter, and there is no parameter server at all"
        ),
        script="tf1_ps.py",
        expects="PS010",
        workers=2,
        guilty=0,
        blames=(0, 1),
        ends=False,
        allowed=("PS002",),
    ),
    "ps-worker-spins": Drill(
        title="A worker of an asynchronous job is in a loop that never ends; the other one has finished",
        script="tf1_ps.py",
        expects="HANG027",
        workers=2,
        guilty=1,
        options=("--ps", "1", "--on-hang", "stop", "--hang-after", "8"),
        inside=True,
        fault="spins",
        arguments=("--steps", "300"),
        exit_codes=(4,),
        allowed=("PS012",),
    ),
}
