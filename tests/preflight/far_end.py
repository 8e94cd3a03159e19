"""Stands in for ssh: what a host does is in its name. Its last two arguments are the host and the command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

host, command = sys.argv[-2:]
HERE = "allaboard preflight runs on: "


def say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


if host == "unreached":
    say("ssh: connect to host unreached port 22: Connection refused")
    sys.exit(255)
if host == "bare":
    say("env: '/opt/python': No such file or directory")
    sys.exit(127)
if host.startswith("real"):
    sys.exit(subprocess.run(["/bin/sh", "-c", command]).returncode)
say(HERE + host.removesuffix(".alias"))
if host == "refuses":
    say("allaboard preflight: wrong use")
    sys.exit(2)
if host.startswith("hangs"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)
if host.startswith("waits"):
    while os.read(0, 4096):
        pass
    Path(f"{host}.ended").touch()
    sys.exit(143)
