"""The folder of a file:// rendezvous is read-only on one host."""

from allaboard.contracts import HostDrill
from allaboard.testbed import Bed, shared


def read_only(bed: Bed) -> None:
    shared.folder(bed)
    bed.cover("h2", shared.FOLDER, read_only=True)


DRILL = HostDrill(
    framework="torch",
    arguments=("--init", shared.URL),
    environment=shared.without_address,
    expects="NET013",
    blames=(2,),
    on=(2,),
    arrange=read_only,
    allowed=("JOIN001",),
    within=12.0,
)
