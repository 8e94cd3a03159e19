"""Faults in TensorFlow 2 jobs with parameter servers."""

from __future__ import annotations

from allaboard.contracts import Drill
from allaboard.drills import cpu_limit
from allaboard.drills.base_rows import lasting_drill
from allaboard.launch.signals import continue_process, kill_process, stop_process


def starve(pid: int) -> None:
    cpu_limit.confine(pid, 0.05)


DRILLS = {
    "tf2-ps-idle": Drill(
        title="A ParameterServerStrategy has three parameter servers for two variables",
        script="tf2_ps.py",
        expects="PS008",
        workers=1,
        guilty=4,
        options=("--ps", "3", "--chief"),
        ends=False,
        long="five processes for a note",
    ),
    "tf2-ps-input": lasting_drill(
        title=(
            "The input of a TensorFlow 2 worker reads from a pipe without a writer; the chief waits for it"
        ),
        script="tf2_ps.py",
        expects="PS016",
        workers=1,
        guilty=0,
        options=("--ps", "1", "--chief"),
        long="most of a minute without any progress, before it is said",
    ),
    "tf2-ps-killed": Drill(
        title="A parameter server of a ParameterServerStrategy is killed by SIGKILL; the chief ends",
        script="tf2_ps.py",
        expects="PS001",
        workers=1,
        guilty=2,
        trains=0,
        options=("--ps", "1", "--chief"),
        outside=kill_process,
    ),
    "tf2-ps-saturated": Drill(
        title="A parameter server of a ParameterServerStrategy is limited to a twentieth of a core",
        script="tf2_ps.py",
        expects="PS005",
        workers=1,
        guilty=2,
        trains=0,
        options=("--ps", "1", "--chief"),
        arguments=("--pause", "0"),
        outside=starve,
        heal=cpu_limit.release,
        ends=False,
        needs=("cgroup-cpu",),
        long="ps-saturated shows the same under TensorFlow 1",
    ),
    "tf2-ps-stopped": Drill(
        title=(
            "A parameter server of a ParameterServerStrategy is stopped by SIGSTOP; the chief "
            "hangs in join"
        ),
        script="tf2_ps.py",
        expects="HANG001",
        workers=1,
        guilty=2,
        trains=0,
        options=("--ps", "1", "--chief", "--on-hang", "stop"),
        outside=stop_process,
        heal=continue_process,
        exit_codes=(4,),
    ),
    "tf2-ps-uneven": Drill(
        title=(
            "One large variable of a ParameterServerStrategy puts nearly all bytes on one of two servers"
        ),
        script="tf2_ps.py",
        expects="PS006",
        workers=1,
        guilty=-1,
        options=("--ps", "2", "--chief"),
        arguments=("--width", "60000"),
        ends=False,
        long="ps-uneven shows the same under TensorFlow 1",
    ),
    "tf2-ps-without": Drill(
        title="A ParameterServerStrategy runs in a cluster that has only workers",
        script="tf2_ps.py",
        expects="PS010",
        workers=2,
        guilty=0,
        blames=(0, 1),
        allowed=("EXIT002",),
        long="ps-without shows the silent form",
    ),
}
