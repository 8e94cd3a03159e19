"""One host asks for another backend than the others."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="torch",
    expects="ENV010",
    blames=(2,),
    faults={2: "other-backend"},
)
