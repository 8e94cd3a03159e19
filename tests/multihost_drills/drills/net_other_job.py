"""One host's launcher says that its worker belongs to another job."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="torch",
    expects="JOIN009",
    blames=(2,),
    on=(2,),
    environment=lambda host, env: env | {"ALLABOARD_JOB_ID": "41" if host == 2 else "42"},
    allowed=("JOIN001",),
)
