"""A stage of a pipeline leaves out one message to the next; soon all stages wait for one."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_pipeline.py",
    expects="HANG024",
    workers=4,
    blames=(1, 2),
    inside=True,
    options=("--on-hang", "stop", "--hang-after", "8"),
    exit_codes=(4,),
)
