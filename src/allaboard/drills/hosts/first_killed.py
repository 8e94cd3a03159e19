"""The worker of the host where all meet is killed in mid-training; the others fall because of it."""

from allaboard.contracts import HostDrill
from allaboard.testbed import Bed

WORKER = "ps -eo pid,args | awk '/torch_ddp.py/ && !/allaboard run|awk/ {print $1}'"


def kill(bed: Bed) -> None:
    bed.run("h0", "sh", "-c", f"kill -KILL $({WORKER})")


DRILL = HostDrill(
    framework="torch",
    expects="EXIT001",
    hosts=3,
    blames=(0,),
    then=kill,
    exit_codes=(1, 137, -9),
)
