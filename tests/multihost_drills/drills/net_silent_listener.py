"""A program that accepts connections and says nothing has the port where all are to meet."""

import sys

from multihost_drills.contract import MEETING_PORT, HostDrill

MUTE = f"import socket, time; s = socket.create_server(('', {MEETING_PORT})); time.sleep(600)"
DRILL = HostDrill(
    framework="torch",
    expects="NET005",
    blames=(0,),
    on=(0,),
    arrange=lambda bed: bed.start("h0", [sys.executable, "-c", MUTE]),
    within=10.0,
)
