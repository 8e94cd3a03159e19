"""A rank matches a regular expression that takes hours, while another of its threads wants to run."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_ddp.py",
    expects="HANG015",
    inside=True,
    options=("--on-hang", "stop", "--hang-after", "8"),
    exit_codes=(4,),
)
