"""A parameter server of a TensorFlow 1 job may use a twentieth of a core, as under a container's limit."""

from allaboard.contracts import Drill
from allaboard.drills.runner import cpu_limit


def starve(pid: int) -> None:
    cpu_limit.confine(pid, 0.05)


DRILL = Drill(
    script="tf1_ps.py",
    expects="PS005",
    workers=2,
    guilty=2,
    trains=0,
    options=("--ps", "1"),
    arguments=("--pause", "0"),
    outside=starve,
    heal=cpu_limit.release,
    ends=False,
    needs=("cgroup-cpu",),
)
