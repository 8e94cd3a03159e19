"""A thread that saves uses the group of the main one: their calls come in another order on one rank."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_shared_group.py",
    expects="HANG022",
    workers=2,
    blames=(0, 1),
    inside=True,
    options=("--on-hang", "stop", "--hang-after", "8"),
    exit_codes=(4,),
)
