"""A parameter server raises before it makes its Server; worker 0, the chief, is held at the roll call."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="tf1_ps.py",
    expects="JOIN003",
    workers=2,
    guilty=2,
    options=("--ps", "1"),
    inside=True,
    fault="dies",
    exit_codes=(3,),
    allowed=(
        "EXIT002",
    ),  # where the chief takes long to come, the exception is told before it is here
    long="dies-before-init shows the same without servers",
)
