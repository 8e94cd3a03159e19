"""A health check keeps asking at the meeting place while one host is late."""

import sys

from multihost_drills.contract import MEETING_PORT, HostDrill

CHECK = f"""
import socket, time
for _ in range(100):
    try:
        with socket.create_connection(("h0", {MEETING_PORT}), 1) as s:
            s.sendall(b"GET /health HTTP/1.1\\r\\nHost: h0\\r\\n\\r\\n")
            s.recv(100)
    except OSError:
        pass
    time.sleep(0.3)
"""
DRILL = HostDrill(
    framework="torch",
    expects="NET011",
    on=(0,),
    late={3: 8.0},
    arrange=lambda bed: bed.start("h2", [sys.executable, "-c", CHECK]),
    arguments=("--steps", "20"),
    options=(),
    exit_codes=(0,),
    within=9.0,
)
