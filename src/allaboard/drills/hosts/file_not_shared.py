"""One host has a folder of its own where the others share one."""

from allaboard.contracts import HostDrill
from allaboard.testbed import Bed, shared


def own_folder(bed: Bed) -> None:
    shared.folder(bed)
    bed.cover("h2", shared.FOLDER)


DRILL = HostDrill(
    framework="torch",
    arguments=("--init", shared.URL),
    environment=shared.without_address,
    expects="NET014",
    blames=(2,),
    on=(2,),
    arrange=own_folder,
    allowed=("JOIN001",),
    within=14.0,
)
