"""Jobs whose hosts meet in a file."""

from __future__ import annotations

from multihost_drills.contract import HostDrill
from testbed import Bed, shared_folder


def read_only(bed: Bed) -> None:
    shared_folder.folder(bed)
    bed.cover("h2", shared_folder.FOLDER, read_only=True)


def own_folder(bed: Bed) -> None:
    shared_folder.folder(bed)
    bed.cover("h2", shared_folder.FOLDER)


def earlier_run(bed: Bed) -> None:
    shared_folder.folder(bed)
    shared_folder.leave_one(bed)


DRILLS = {
    "file-folder-missing": HostDrill(
        title="The folder of a file:// rendezvous does not exist on one host",
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
    ),
    "file-folder-read-only": HostDrill(
        title="The folder of a file:// rendezvous is read-only on one host",
        framework="torch",
        arguments=("--init", shared_folder.URL),
        environment=shared_folder.without_address,
        expects="NET013",
        blames=(2,),
        on=(2,),
        arrange=read_only,
        allowed=("JOIN001",),
        within=12.0,
    ),
    "file-healthy": HostDrill(
        title=(
            "Nothing is wrong: hosts meet through file:// in a shared folder, start, train and end"
        ),
        framework="torch",
        arguments=("--init", shared_folder.URL, "--steps", "20"),
        environment=shared_folder.without_address,
        expects="",
        hosts=2,
        arrange=shared_folder.folder,
        options=(),
        exit_codes=(0,),
    ),
    "file-lock-elsewhere": HostDrill(
        title="A rank on a follower's host waits for a file lock that a process there holds",
        framework="torch",
        expects="HANG004",
        hosts=2,
        blames=(1,),
        faults={1: "file-lock"},
        options=("--on-hang", "stop", "--hang-after", "8"),
        exit_codes=(4,),
        within=15.0,
        says=r"held by pid \d+",
    ),
    "file-not-shared": HostDrill(
        title="One host has a folder of its own where the others share one",
        framework="torch",
        arguments=("--init", shared_folder.URL),
        environment=shared_folder.without_address,
        expects="NET014",
        hosts=3,
        blames=(2,),
        on=(2,),
        arrange=own_folder,
        allowed=("JOIN001",),
        within=14.0,
    ),
    "file-stale": HostDrill(
        title="The file of a file:// rendezvous exists already, left by an earlier run",
        framework="torch",
        arguments=("--init", shared_folder.URL),
        environment=shared_folder.without_address,
        expects="JOIN008",
        blames=(0,),
        arrange=earlier_run,
    ),
}
