"""The folder of a file:// rendezvous does not exist on one host."""

from allaboard.contracts import HostDrill
from allaboard.testbed import shared

DRILL = HostDrill(
    framework="torch",
    arguments=("--init", shared.URL),
    environment=shared.without_address,
    expects="NET013",
    blames=(2,),
    on=(2,),
    arrange=lambda bed: shared.folder(bed, "h0", "h1", "h3"),
    allowed=("JOIN001",),
    within=12.0,
    long="as when it is read-only",
)
