"""A rank raises at the same line and step in every round; it is started again once, and no more."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_ddp.py",
    expects="EXIT002",
    inside=True,
    fault="exception",
    options=("--on-failure", "restart", "--max-restarts", "9"),
    restarts=1,
    long="tests/cli stages it without a framework in a second",
)
