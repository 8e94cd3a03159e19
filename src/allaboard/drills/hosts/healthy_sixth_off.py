"""Nothing is wrong: IPv6 is off on the first host, whose name resolves to it too. TensorFlow trains."""

from allaboard.contracts import HostDrill
from allaboard.testbed import sixth

DRILL = HostDrill(
    framework="tensorflow",
    expects="",
    hosts=3,
    arrange=lambda bed: sixth.both(bed, without=("h0",)),
    arguments=("--steps", "20"),
    options=(),
    exit_codes=(0,),
)
