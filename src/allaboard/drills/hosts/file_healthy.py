"""A file:// rendezvous in a folder that all hosts share: they start, train and end."""

from allaboard.contracts import HostDrill
from allaboard.testbed import shared

DRILL = HostDrill(
    framework="torch",
    arguments=("--init", shared.URL, "--steps", "20"),
    environment=shared.without_address,
    expects="",
    hosts=2,
    arrange=shared.folder,
    options=(),
    exit_codes=(0,),
)
