"""All have destroyed their group, PyTorch has not removed its file, and they make another group at it."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_file_again.py",
    expects="JOIN008",
    workers=2,
    guilty=0,
    inside=True,
    exit_codes=(3,),
)
