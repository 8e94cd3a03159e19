"""A worker dies before the first host comes to its init, and nothing bounds the roll call: all are told."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="jax",
    expects="JOIN003",
    hosts=3,
    blames=(1,),
    on=(0, 2),
    faults={1: "dies-before-init"},
    late={0: 4.0},
    options=(),
    ends=False,
    within=6.0,
    allowed=("EXIT002",),
)
