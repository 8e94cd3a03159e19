"""A process of JAX sleeps in its own code before it comes to its init: it is alive, and known by its rank."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="jax",
    hosts=3,
    expects="JOIN002",
    blames=(1,),
    faults={1: "asleep-before-init"},
    options=("--timeout", "6", "--timeout-hard", "14"),
    exit_codes=(3,),
    within=9.0,
)
