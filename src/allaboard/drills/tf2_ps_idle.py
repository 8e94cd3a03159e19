"""Three parameter servers for the two variables of a ParameterServerStrategy."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="tf2_ps.py",
    expects="PS008",
    workers=1,
    guilty=4,
    options=("--ps", "3", "--chief"),
    ends=False,
    long="five processes for a note",
)
