"""A rank of another host than the deciding one waits for a file lock that a process there holds."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="torch",
    expects="HANG004",
    hosts=2,
    blames=(1,),
    faults={1: "file-lock"},
    options=("--on-hang", "stop", "--hang-after", "8"),
    exit_codes=(4,),
    within=15.0,
    says=r"held by pid \d+",
)
