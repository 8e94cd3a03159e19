"""Of two hosts the one that connects for JAX's collectives is dropped by the other's firewall: they hang in
their first computation, and the bound that was asked for ends it."""

from multihost_drills.contract import MEETING_PORT, HostDrill
from testbed.firewall import Block

DRILL = HostDrill(
    framework="jax",
    expects="NET006",
    hosts=2,
    blames=(0, 1),
    arrange=lambda bed: bed.block("h0", Block(peer="h1", new=True, but=(MEETING_PORT,))),
    within=9.0,
    bound=22.0,
    allowed=("NET012",),
)
