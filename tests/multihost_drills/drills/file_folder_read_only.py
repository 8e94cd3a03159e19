"""The folder of a file:// rendezvous is read-only on one host."""

from multihost_drills.contract import HostDrill
from testbed import Bed, shared_folder


def read_only(bed: Bed) -> None:
    shared_folder.folder(bed)
    bed.cover("h2", shared_folder.FOLDER, read_only=True)


DRILL = HostDrill(
    framework="torch",
    arguments=("--init", shared_folder.URL),
    environment=shared_folder.without_address,
    expects="NET013",
    blames=(2,),
    on=(2,),
    arrange=read_only,
    allowed=("JOIN001",),
    within=12.0,
)
