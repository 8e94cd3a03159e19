"""The host where all meet was given no secret, the others one."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="torch",
    expects="NET011",
    hosts=2,
    on=(0,),
    environment=lambda host, told: {**told, "ALLABOARD_SECRET": "of the job"} if host else told,
    within=8.0,
    says=r"h1 \(rank 1\), which knows a secret of the job, and the host where all meet was given none",
    allowed=("JOIN001", "NET015"),
)
