"""As missing-send, where all that is received is begun in batches and waited for afterwards."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_pipeline.py",
    fault="missing-send",
    arguments=("--batched",),
    expects="HANG024",
    workers=4,
    blames=(1, 2),
    inside=True,
    options=("--on-hang", "stop", "--hang-after", "8"),
    exit_codes=(4,),
)
