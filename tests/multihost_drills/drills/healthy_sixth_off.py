"""Nothing is wrong: IPv6 is off on the first host, whose name resolves to it too. TensorFlow trains."""

from multihost_drills.contract import HostDrill
from testbed import ipv6

DRILL = HostDrill(
    framework="tensorflow",
    expects="",
    hosts=3,
    arrange=lambda bed: ipv6.both(bed, without=("h0",)),
    arguments=("--steps", "20"),
    options=(),
    exit_codes=(0,),
)
