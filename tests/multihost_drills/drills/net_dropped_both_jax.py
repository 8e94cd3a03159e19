"""A firewall drops all between two hosts of a JAX job, in both directions."""

from multihost_drills.contract import HostDrill
from testbed.firewall import Block

DRILL = HostDrill(
    framework="jax",
    expects="NET006",
    blames=(1, 3),
    arrange=lambda bed: bed.block("h3", Block(way="both", peer="h1")),
    long="one-way-needed-jax shows the link, net-data-ports-dropped both directions",
)
