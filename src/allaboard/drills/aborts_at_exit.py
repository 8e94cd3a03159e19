"""A rank trains to its end and aborts while its interpreter shuts down."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_ddp.py",
    expects="EXIT006",
    inside=True,
    arguments=("--steps", "80"),
    allowed=("EXIT005",),
)
