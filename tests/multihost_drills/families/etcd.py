"""Jobs whose hosts meet in etcd."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

from multihost_drills.contract import HostDrill
from testbed import Bed, etcd
from testbed.firewall import Block

SERVICE = "h3"

ESTABLISHED = "01"
"""In /proc/net/tcp, proc_pid_net(5)."""


def arrange(bed: Bed) -> None:
    etcd.Etcd(bed, SERVICE)
    threading.Thread(target=_cut, args=(bed,), daemon=True).start()


def _cut(bed: Bed) -> None:
    """Once two other hosts have come to it."""
    table = Path(f"/proc/{bed.first('h0')}/net/tcp")
    etcd_itself = f":{etcd.PORT:04X}"
    try:
        while True:
            rows = [row.split() for row in table.read_text().splitlines()[1:]]
            theirs = {r[2] for r in rows if r[3] == ESTABLISHED and not r[2].endswith(etcd_itself)}
            if len(theirs) >= 2:
                break
            time.sleep(0.2)
        time.sleep(1.0)
        bed.unplug("h0")
    except (OSError, KeyError):
        pass  # the bed has gone


def goes(bed: Bed) -> None:
    for host in bed.hosts:
        bed.block(host, Block(way="out", ports=(etcd.PORT,)))


SERVICE_ETCD_OTHER_PREFIX = "h3"


def arrange_etcd_other_prefix(bed: Bed) -> None:
    etcd.Etcd(bed, SERVICE_ETCD_OTHER_PREFIX)


def environment(host: int, told: dict[str, str]) -> dict[str, str]:
    prefix = "job-7" if host == 2 else "job-8"
    # Without a secret the host that follows shows no advice of the one that leads.
    return {
        **told,
        "ALLABOARD_COORDINATOR": f"etcd://{SERVICE_ETCD_OTHER_PREFIX}:2379/{prefix}",
        "ALLABOARD_SECRET": "not so secret",
    }


MUTE = "import socket, time; s = socket.create_server(('', 2378)); time.sleep(600)"


def arrange_etcd_some_mute(bed: Bed) -> None:
    etcd.Etcd(bed, "h3")
    bed.start("h2", [sys.executable, "-c", MUTE])


def arrange_etcd_unreachable(bed: Bed) -> None:
    etcd.Etcd(bed, "h0")
    bed.block("h0", Block(peer="h2", ports=(etcd.PORT,)))


DRILLS = {
    "etcd-first-dies": HostDrill(
        title=(
            "Hosts meet through etcd; the leader loses its network while they wait for the last "
            "host"
        ),
        framework="torch",
        expects="JOIN003",
        blames=(0,),
        on=(1, 2),
        arrange=arrange,
        absent=(3,),
        late={1: 2.0, 2: 2.0},
        options=("--timeout", "25", "--coordinator", f"etcd://{SERVICE}:2379/drill"),
        within=25.0,
        allowed=("NET016",),
        needs=etcd.NEEDS,
    ),
    "etcd-healthy": HostDrill(
        title="Four hosts meet through etcd, which runs on the last of them, and train",
        framework="torch",
        expects="",
        arrange=lambda bed: etcd.Etcd(bed, "h3"),
        arguments=("--steps", "20"),
        options=("--timeout", "30", "--coordinator", "etcd://h3:2379/drill"),
        exit_codes=(0,),
        needs=etcd.NEEDS,
    ),
    "etcd-healthy-tf2-ps": HostDrill(
        title=(
            "A ParameterServerStrategy over four hosts that meet through etcd starts, trains and "
            "ends without a finding"
        ),
        framework="tensorflow",
        expects="",
        roles=("chief", "worker", "worker", "ps"),
        scripts=dict.fromkeys(range(4), "tf2_ps.py"),
        arrange=lambda bed: etcd.Etcd(bed, "h3"),
        arguments=("--rounds", "20"),
        options=("--coordinator", "etcd://h3:2379/drill"),
        exit_codes=(0,),
        needs=etcd.NEEDS,
        long="etcd-healthy shows the same of PyTorch",
    ),
    "etcd-lost-later": HostDrill(
        title=(
            "The etcd through which the hosts met is unreachable once they train: there is no "
            "finding"
        ),
        framework="torch",
        expects="",
        hosts=3,
        arrange=lambda bed: etcd.Etcd(bed, "h2"),
        then=goes,
        arguments=("--steps", "60"),
        options=("--timeout", "30", "--coordinator", "etcd://h2:2379/drill"),
        exit_codes=(0,),
        needs=etcd.NEEDS,
    ),
    "etcd-other-prefix": HostDrill(
        title="Hosts meet through etcd; one of them has another prefix than the others",
        framework="torch",
        expects="JOIN001",
        hosts=4,
        blames=(2, 3),
        on=(0, 1),
        arrange=arrange_etcd_other_prefix,
        absent=(3,),
        environment=environment,
        options=("--timeout", "12"),
        within=14.0,
        says=r"give it etcd://h3:2379/job-8 too",
        needs=etcd.NEEDS,
    ),
    "etcd-some-mute": HostDrill(
        title=(
            "Hosts meet through etcd at three addresses: nothing listens at the first, and the "
            "second does not answer"
        ),
        framework="torch",
        expects="",
        arrange=arrange_etcd_some_mute,
        arguments=("--steps", "20"),
        options=("--timeout", "30", "--coordinator", "etcd://h2:2377,h2:2378,h3:2379/drill"),
        exit_codes=(0,),
        needs=etcd.NEEDS,
        long="tests/meeting asks such endpoints",
    ),
    "etcd-unreachable": HostDrill(
        title="Hosts meet through etcd, and a firewall blocks one of them",
        framework="torch",
        hosts=3,
        expects="NET016",
        blames=(2,),
        on=(2,),
        arrange=arrange_etcd_unreachable,
        options=("--timeout", "8", "--coordinator", "etcd://h0:2379/drill"),
        within=10.0,
        allowed=("JOIN001",),
        needs=etcd.NEEDS,
    ),
}
