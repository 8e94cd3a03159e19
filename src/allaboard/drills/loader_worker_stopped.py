"""A worker process of a rank's DataLoader is stopped by SIGSTOP."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_ddp.py",
    expects="HANG003",
    inside=True,
    arguments=("--loader-workers", "1"),
    options=("--on-hang", "stop", "--hang-after", "10"),
    exit_codes=(4,),
)
