"""Real services over the hosts of a bed: what a job would be started with."""

from __future__ import annotations

import json
import os
import sys
import time

import pytest

from bedded import need
from testbed import Bed, etcd, open_mpi, slurm, ssh

# One write a process, so that those of several are not mixed within a line.
_SCRIPT = "import os, sys; os.write(1, f'{os.environ[sys.argv[1]]} {os.uname()[1]}\\n'.encode())"
NUMBER_AND_HOST = (sys.executable, "-S", "-c", _SCRIPT)


def test_slurm() -> None:
    need(*slurm.NEEDS)
    with Bed(4) as bed:
        began = time.monotonic()
        service = slurm.Slurm(bed)
        words = ["srun", "-N4", "-n4", "--mpi=none", *NUMBER_AND_HOST, "SLURM_PROCID"]
        process = bed.start("h0", words, service.environment)
        assert process.wait(30) == 0, process.text()
        assert sorted(process.text().split("\n")[:4]) == ["0 h0", "1 h1", "2 h2", "3 h3"]
        assert time.monotonic() - began < 15
        process = bed.start("h2", ["srun", "-N4", "-n8", "false"], service.environment)
        assert process.wait(30) == 1, process.text()


def test_ssh() -> None:
    need(*ssh.NEEDS)
    with Bed(2) as bed:
        service = ssh.Ssh(bed)
        assert bed.run("h0", *service.command, "h1", "hostname") == "h1\n"
        assert bed.run("h1", *service.command, "h0", "pwd") == "/root\n"


def test_open_mpi() -> None:
    need(*open_mpi.NEEDS)
    with Bed(4) as bed:
        service = open_mpi.OpenMpi(bed)
        command = (*service.command, "-n", "4", *NUMBER_AND_HOST, "OMPI_COMM_WORLD_RANK")
        said = bed.run("h0", *command)
        # mpirun itself may warn, on lines that begin with its host, of a race with its own children.
        lines = sorted(line for line in said.splitlines() if not line.startswith("["))
        assert lines == ["0 h0", "1 h1", "2 h2", "3 h3"]


@pytest.mark.parametrize("host", ["h0", "h1"])
def test_etcd(host: str) -> None:
    need(*etcd.NEEDS)
    script = (
        "import json, sys, urllib.request as r\n"
        "url, method, body = sys.argv[1:]\n"
        "print(r.urlopen(f'http://{url}/v3/kv/{method}', body.encode(), 5).read().decode())"
    )
    clean = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    with Bed(2) as bed:
        service = etcd.Etcd(bed, host)
        answers = []
        for client, method, body in (
            ("h0", "put", {"key": "YQ==", "value": "Yg=="}),
            ("h1", "range", {"key": "YQ=="}),
        ):
            words = [sys.executable, "-S", "-c", script, service.address, method, json.dumps(body)]
            process = bed.start(client, words, clean)
            assert process.wait(10) == 0, process.text()
            answers.append(json.loads(process.text()))
        assert answers[1]["kvs"][0]["value"] == "Yg=="
