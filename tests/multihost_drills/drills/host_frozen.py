"""All processes of a host are stopped in mid-training, its agent too; its kernel answers for them."""

from multihost_drills.contract import HostDrill
from testbed import Bed


def freeze(bed: Bed) -> None:
    bed.run("h1", "sh", "-c", "kill -STOP -1")


DRILL = HostDrill(
    framework="torch",
    expects="HANG017",
    hosts=3,
    blames=(1,),
    on=(0, 2),
    then=freeze,
    ends=False,
    within=50.0,
    exit_codes=(143, 137, -9, -15),
    allowed=("HANG005", "HANG006", "EXIT005"),
)
