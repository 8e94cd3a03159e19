"""A rank has two batches less than the others, and goes on to what comes after its loop."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_shards.py",
    expects="DATA001",
    inside=True,
    options=("--on-hang", "stop"),
    exit_codes=(1, 4),
    allowed=("HANG009", "EXIT001", "EXIT002", "EXIT005"),
)
