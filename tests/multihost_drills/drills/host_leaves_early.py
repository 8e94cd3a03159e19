"""The worker of one host ends with exit code 0 in mid-training: it is told there, too."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="torch",
    expects="EXIT004",
    hosts=3,
    blames=(1,),
    faults={1: "leaves-early"},
    exit_codes=(0, 1),
    says=r"failed after .*, exit code",
    within=60.0,
)
