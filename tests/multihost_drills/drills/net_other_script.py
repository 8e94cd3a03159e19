"""One host runs another script."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="torch",
    expects="ENV007",
    blames=(2,),
    scripts={2: "torch_ddp_older.py"},
    arguments=("--steps", "20"),
    options=(),
    exit_codes=(0,),
)
