"""One host has 8 Mbit/s where the others have a gigabit and more."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="torch",
    expects="NET008",
    blames=(2,),
    arrange=lambda bed: bed.narrow("h2", 8),
    arguments=("--steps", "20"),
    options=(),
    exit_codes=(0,),
)
