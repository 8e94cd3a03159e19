"""The folder of a file:// rendezvous does not exist on one host."""

from multihost_drills.contract import HostDrill
from testbed import shared_folder

DRILL = HostDrill(
    framework="torch",
    arguments=("--init", shared_folder.URL),
    environment=shared_folder.without_address,
    expects="NET013",
    blames=(2,),
    on=(2,),
    arrange=lambda bed: shared_folder.folder(bed, "h0", "h1", "h3"),
    allowed=("JOIN001",),
    within=12.0,
    long="as when it is read-only",
)
