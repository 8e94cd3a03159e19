"""A variable that the framework obeys is set on one host only."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="torch",
    expects="ENV008",
    blames=(2,),
    environment=lambda host, env: env | ({"NCCL_IB_DISABLE": "1"} if host == 2 else {}),
    arguments=("--steps", "20"),
    options=(),
    exit_codes=(0,),
)
