"""A file:// rendezvous in a folder that all hosts share: they start, train and end."""

from multihost_drills.contract import HostDrill
from testbed import shared_folder

DRILL = HostDrill(
    framework="torch",
    arguments=("--init", shared_folder.URL, "--steps", "20"),
    environment=shared_folder.without_address,
    expects="",
    hosts=2,
    arrange=shared_folder.folder,
    options=(),
    exit_codes=(0,),
)
