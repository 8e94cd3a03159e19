"""The same of JAX, on the first host: its gloo says so only in the first collective."""

from multihost_drills.contract import HostDrill
from testbed import ipv6

DRILL = HostDrill(
    framework="jax",
    expects="NET018",
    hosts=3,
    blames=(0,),
    arrange=lambda bed: ipv6.both(bed, without=("h0",)),
    exit_codes=(1,),
    within=8.0,
    allowed=("EXIT002",),  # of the others' own agents, once the first has ended
)
