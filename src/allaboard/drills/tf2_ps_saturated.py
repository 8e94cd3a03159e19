"""A parameter server of a ParameterServerStrategy may use a twentieth of a core."""

from allaboard.contracts import Drill
from allaboard.drills.runner import cpu_limit


def starve(pid: int) -> None:
    cpu_limit.confine(pid, 0.05)


DRILL = Drill(
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
)
