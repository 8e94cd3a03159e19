"""One host loses two packets of a hundred on a slow line: slower, and it trains."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="torch",
    expects="NET008",
    blames=(2,),
    arrange=lambda bed: bed.wire("h2", delay=0.02, loss=0.02),
    needs=("wire",),
    arguments=("--steps", "20"),
    options=(),
    exit_codes=(0,),
    long="as the slow link",
)
