"""Tasks whose ports are of the ephemeral range, as those of many clusters are, on a host with few of them:
whatever ports the kernel gives to our own sockets, the tasks bind theirs, and all meet."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from bedded import need
from multihost_drills.run_host_drill import CLUSTER
from testbed import Bed

JOB = Path(__file__).parent.parent / "meetings" / "jobs" / "binds.py"
FIRST, LAST = 40000, 40039
ROUNDS = 8


@pytest.mark.zoo
@pytest.mark.parametrize("rounds", [ROUNDS, pytest.param(100, marks=pytest.mark.long)])
def test_every_task_gets_its_port(rounds: int) -> None:
    need()
    with Bed(1) as bed:
        limits = f"echo {FIRST} {LAST} > /proc/sys/net/ipv4/ip_local_port_range"
        bed.run("h0", "sh", "-c", limits)
        for round_ in range(rounds):
            workers = [f"127.0.0.1:{FIRST + 1 + 2 * i + round_ % 2}" for i in range(3)]
            processes = []
            for index in (1, 2, 0):
                environment = {k: v for k, v in os.environ.items() if not k.startswith(CLUSTER)}
                task = {"type": "worker", "index": index}
                environment["TF_CONFIG"] = json.dumps(
                    {"cluster": {"worker": workers}, "task": task}
                )
                folder = str(bed.folder / f"run-{round_}-{index}")
                words = [sys.executable, "-m", "allaboard", "run", "--timeout", "12", "--run-dir"]
                processes.append(bed.start("h0", [*words, folder, str(JOB)], environment))
            codes = [p.wait(120) for p in processes]
            assert codes == [0, 0, 0], "\n".join(p.text() for p in processes)[-4000:]
