"""One host has a folder of its own where the others share one."""

from multihost_drills.contract import HostDrill
from testbed import Bed, shared_folder


def own_folder(bed: Bed) -> None:
    shared_folder.folder(bed)
    bed.cover("h2", shared_folder.FOLDER)


DRILL = HostDrill(
    framework="torch",
    arguments=("--init", shared_folder.URL),
    environment=shared_folder.without_address,
    expects="NET014",
    blames=(2,),
    on=(2,),
    arrange=own_folder,
    allowed=("JOIN001",),
    within=14.0,
)
