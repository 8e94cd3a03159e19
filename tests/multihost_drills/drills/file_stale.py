"""The file of a file:// rendezvous is there, left by an earlier run."""

from multihost_drills.contract import HostDrill
from testbed import Bed, shared_folder


def earlier_run(bed: Bed) -> None:
    shared_folder.folder(bed)
    shared_folder.leave_one(bed)


DRILL = HostDrill(
    framework="torch",
    arguments=("--init", shared_folder.URL),
    environment=shared_folder.without_address,
    expects="JOIN008",
    blames=(0,),
    arrange=earlier_run,
)
