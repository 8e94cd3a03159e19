"""Links that are lost, slow or lossy while the job trains, or that work one way only."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from multihost_drills.contract import MEETING_PORT, HostDrill
from testbed import Bed
from testbed.firewall import Block

ESTABLISHED = "01"
"""In /proc/net/tcp, proc_pid_net(5)."""


def arrange(bed: Bed) -> None:
    threading.Thread(target=_cut, args=(bed,), daemon=True).start()


def _cut(bed: Bed) -> None:
    """Once it has come to the meeting."""
    table = Path(f"/proc/{bed.first('h1')}/net/tcp")
    meeting = f":{MEETING_PORT:04X}"
    try:
        while not any(
            row.split()[2].endswith(meeting) and row.split()[3] == ESTABLISHED
            for row in table.read_text().splitlines()[1:]
        ):
            time.sleep(0.2)
        time.sleep(2.0)
        bed.unplug("h1")
    except (OSError, KeyError):
        pass  # the bed has gone


DRILLS = {
    "link-lost": HostDrill(
        title="Two of three hosts lose the link between them in the middle of training",
        framework="torch",
        expects="NET012",
        hosts=3,
        blames=(1, 2),
        then=lambda bed: bed.block("h1", Block(way="both", peer="h2")),
        options=("--on-hang", "stop", "--hang-after", "12"),
        exit_codes=(4,),
        within=12.0,
    ),
    "link-lost-leader": HostDrill(
        title="The first host and another lose the link between them, and so do their agents",
        framework="torch",
        expects="NET012",
        hosts=3,
        blames=(0, 2),
        on=(0, 1),
        then=lambda bed: bed.block("h0", Block(way="both", peer="h2")),
        options=(),
        ends=False,
        within=15.0,
    ),
    "link-lost-one-way": HostDrill(
        title=(
            "One host receives nothing more from another in the middle of training; the other "
            "direction works"
        ),
        framework="torch",
        expects="NET012",
        hosts=3,
        blames=(1, 2),
        then=lambda bed: bed.block("h1", Block(way="in", peer="h2")),
        options=("--on-hang", "stop", "--hang-after", "12"),
        exit_codes=(4,),
        within=12.0,
    ),
    "link-lost-tensorflow": HostDrill(
        title=(
            "Two of three hosts lose the link between them in the middle of a TensorFlow training"
        ),
        framework="tensorflow",
        expects="NET012",
        hosts=3,
        blames=(1, 2),
        then=lambda bed: bed.block("h1", Block(way="both", peer="h2")),
        options=(),
        ends=False,
        within=15.0,
    ),
    "link-slowed": HostDrill(
        title="One host's link drops to 8 Mbit/s in the middle of training",
        framework="torch",
        expects="SLOW007",
        hosts=3,
        blames=(2,),
        then=lambda bed: bed.narrow("h2", 8),
        arguments=("--width", "768"),
        options=(),
        ends=False,
        within=60.0,
        long="medians of many steps take half a minute",
    ),
    "lossy-link": HostDrill(
        title="One host loses two percent of its packets on a slow line: it trains, but slower",
        framework="torch",
        expects="NET008",
        blames=(2,),
        arrange=lambda bed: bed.wire("h2", delay=0.02, loss=0.02),
        needs=("wire",),
        arguments=("--steps", "20"),
        options=(),
        exit_codes=(0,),
        long="as the slow link",
    ),
    "one-way-needed": HostDrill(
        title=(
            "Of two hosts, the one that gloo makes connect is rejected by the other: it fails, the "
            "other hangs in init, and --timeout ends it"
        ),
        framework="torch",
        expects="NET006",
        hosts=2,
        blames=(0, 1),
        arrange=lambda bed: bed.block(
            "h0", Block(verdict="reset", peer="h1", new=True, but=(MEETING_PORT,))
        ),
        bound=22.0,
        exit_codes=(1, 3),
        allowed=("EXIT005", "EXIT002"),
    ),
    "one-way-needed-jax": HostDrill(
        title=(
            "Of two hosts, the other's firewall drops the one that connects for JAX's collectives: "
            "they hang in their first computation, and --timeout ends it"
        ),
        framework="jax",
        expects="NET006",
        hosts=2,
        blames=(0, 1),
        arrange=lambda bed: bed.block("h0", Block(peer="h1", new=True, but=(MEETING_PORT,))),
        within=9.0,
        bound=22.0,
        allowed=("NET012",),
    ),
    "one-way-not-needed": HostDrill(
        title=(
            "Of two hosts, the other's firewall rejects the one that gloo makes wait for a "
            "connection: it is reported, and they train in spite of --timeout"
        ),
        framework="torch",
        expects="NET006",
        hosts=2,
        blames=(0, 1),
        arrange=lambda bed: bed.block(
            "h1", Block(verdict="reset", peer="h0", new=True, but=(MEETING_PORT,))
        ),
        arguments=("--steps", "20"),
        exit_codes=(0,),
    ),
    "one-way-rejected-tensorflow": HostDrill(
        title=(
            "A firewall rejects one TensorFlow worker's connections to the other; the other "
            "direction works: TensorFlow fails in its first all-reduce"
        ),
        framework="tensorflow",
        expects="NET006",
        hosts=2,
        blames=(0, 1),
        arrange=lambda bed: bed.block("h1", Block(verdict="reset", peer="h0", new=True)),
        within=9.0,
        bound=40.0,
        exit_codes=(1, 3),
        allowed=("NET012", "EXIT005", "EXIT002"),
        long="one-way-tensorflow shows the link, and the end",
    ),
    "one-way-tensorflow": HostDrill(
        title=(
            "A firewall drops one TensorFlow worker's connections to the other; the other "
            "direction works: the strategy starts, its first all-reduce hangs, and --timeout ends "
            "it"
        ),
        framework="tensorflow",
        expects="NET006",
        hosts=2,
        blames=(0, 1),
        arrange=lambda bed: bed.block("h1", Block(peer="h0", new=True)),
        within=9.0,
        bound=22.0,
        allowed=("NET012",),
    ),
    "unplugged": HostDrill(
        title=(
            "A host that waits in the roll call loses its network without closing its connections"
        ),
        framework="torch",
        hosts=3,
        expects="JOIN003",
        blames=(1,),
        on=(0,),
        arrange=arrange,
        absent=(2,),
        options=("--timeout", "30"),
        within=20.0,
        allowed=("NET003", "NET004"),
    ),
}
