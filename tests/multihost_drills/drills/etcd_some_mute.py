"""Hosts find each other in an etcd of which they know three addresses: nothing listens at the first, and what
listens at the second says nothing."""

import sys

from multihost_drills.contract import HostDrill
from testbed import Bed, etcd

MUTE = "import socket, time; s = socket.create_server(('', 2378)); time.sleep(600)"


def arrange(bed: Bed) -> None:
    etcd.Etcd(bed, "h3")
    bed.start("h2", [sys.executable, "-c", MUTE])


DRILL = HostDrill(
    framework="torch",
    expects="",
    arrange=arrange,
    arguments=("--steps", "20"),
    options=("--timeout", "30", "--coordinator", "etcd://h2:2377,h2:2378,h3:2379/drill"),
    exit_codes=(0,),
    needs=etcd.NEEDS,
    long="tests/meeting asks such endpoints",
)
