"""One host was given another secret than the others."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="torch",
    expects="NET015",
    blames=(2,),
    on=(2,),
    environment=lambda host, told: {**told, "ALLABOARD_SECRET": f"of host {host == 2}"},
    within=8.0,
    allowed=("JOIN001", "NET011"),
)
