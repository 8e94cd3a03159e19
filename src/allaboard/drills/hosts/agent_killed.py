"""The agent of a host is killed in mid-training, and its worker ends with it."""

from allaboard.contracts import HostDrill
from allaboard.testbed import Bed

AGENT = "ps -eo pid,args | awk '/allaboard run/ && !/awk/ {print $1}' | head -n 1"
"""Not its keeper, which bears the same name and clears up."""


def kill(bed: Bed) -> None:
    bed.run("h1", "sh", "-c", f"kill -KILL $({AGENT})")


DRILL = HostDrill(
    framework="torch",
    expects="EXIT010",
    hosts=3,
    blames=(1,),
    on=(0, 2),
    then=kill,
    within=8.0,
    exit_codes=(1, 137, -9),
)
