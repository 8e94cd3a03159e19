"""The file of a file:// rendezvous is there, left by an earlier run."""

from allaboard.contracts import HostDrill
from allaboard.testbed import Bed, shared


def earlier_run(bed: Bed) -> None:
    shared.folder(bed)
    shared.leave_one(bed)


DRILL = HostDrill(
    framework="torch",
    arguments=("--init", shared.URL),
    environment=shared.without_address,
    expects="JOIN008",
    blames=(0,),
    arrange=earlier_run,
)
