"""A web server has the port where all are to meet."""

import sys

from multihost_drills.contract import MEETING_PORT, HostDrill

DRILL = HostDrill(
    framework="torch",
    expects="NET005",
    blames=(1,),
    on=(1,),
    arrange=lambda bed: bed.start("h0", [sys.executable, "-m", "http.server", str(MEETING_PORT)]),
    within=7.0,
)
