"""Other people's launchers on several hosts: of a healthy start nothing is said, and all train; a rank
that is killed below them is named on every host."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from allaboard.drills.run_drill import JOBS as DRILLS
from bedded import need
from multihost_drills.contract import MEETING_PORT
from multihost_drills.run_host_drill import CLUSTER
from testbed import Bed, open_mpi, slurm
from testbed.process import Process

JOBS = Path(__file__).parent / "jobs"
SECONDS = 200
"""For the job on a machine with much other work; the bed lives for longer."""
HOSTS = 3
RUN = shlex.join([sys.executable, "-m", "allaboard", "run"])
WHERE = {"MASTER_ADDR": "h0", "MASTER_PORT": str(MEETING_PORT)}


def _environment() -> dict[str, str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(CLUSTER)}
    return clean | {"OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}


OTHERS = pytest.mark.parametrize(
    "script",
    ["train_anywhere.py", *(pytest.param(f"train_anywhere_{f}.py", marks=pytest.mark.long)
                            for f in ("jax", "tf"))],
)  # fmt: skip
"""The same job of PyTorch, JAX and TensorFlow."""


def _command(bed: Bed, script: str) -> list[str]:
    """The command that the launcher starts on each host; its run folder is named by the host."""
    words = f"{RUN} --run-dir {bed.folder}/run-$(hostname) {JOBS / script}"
    return ["bash", "-c", words]


def _judge(bed: Bed, *processes: Process) -> None:
    for process in processes:
        with suppress(subprocess.TimeoutExpired):  # then it has no exit code below
            process.wait(SECONDS)
    said = "\n".join(p.text() for p in processes)
    assert [p.poll() for p in processes] == [0] * len(processes), said[-6000:]
    for rank in range(HOSTS):
        assert f"rank {rank} of {HOSTS} trained 20 steps" in said, said[-6000:]
    for host in bed.hosts:
        report = json.loads((bed.folder / f"run-{host}" / "report.json").read_text())
        found = [f["summary"] for f in report["findings"] if f["stage"] != "config"]
        assert report["exit_code"] == 0 and not found, said[-6000:]
        assert any(f"all {HOSTS} ready" in note for note in report["notes"]), report["notes"]


@pytest.mark.zoo
@pytest.mark.parametrize(
    "script",
    ["train_anywhere.py", "train_slurm_tf.py",
     pytest.param("train_anywhere_jax.py", marks=pytest.mark.long)],
)  # fmt: skip
def test_srun(script: str) -> None:
    need(*slurm.NEEDS)
    with Bed(HOSTS) as bed:
        service = slurm.Slurm(bed)
        words = ["srun", f"-N{HOSTS}", f"-n{HOSTS}", "--mpi=none", *_command(bed, script)]
        environment = {**_environment(), **WHERE, "SLURM_CONF": service.environment["SLURM_CONF"]}
        _judge(bed, bed.start("h0", words, environment))


@pytest.mark.zoo
@OTHERS
def test_mpirun(script: str) -> None:
    need(*open_mpi.NEEDS)
    with Bed(HOSTS) as bed:
        service = open_mpi.OpenMpi(bed)
        passed = {**WHERE, "OMP_NUM_THREADS": "1", "PATH": os.environ["PATH"]}
        options = [w for k, v in passed.items() for w in ("-x", f"{k}={v}")]
        words = [*service.command, *options, "-n", str(HOSTS), *_command(bed, script)]
        _judge(bed, bed.start("h0", words, _environment()))


@pytest.mark.zoo
@pytest.mark.parametrize(
    "options",
    [
        ("--node-rank", "{rank}", "--master-addr", "h0", "--master-port", "29500"),
        ("--rdzv-backend", "c10d", "--rdzv-endpoint", "h0:29400", "--rdzv-id", "7"),
    ],
    ids=["static", "c10d"],
)
def test_torchrun(options: tuple[str, ...]) -> None:
    _torchrun("train_anywhere.py", options)


@pytest.mark.zoo
@pytest.mark.long
@pytest.mark.parametrize("script", ["train_anywhere_jax.py", "train_anywhere_tf.py"])
def test_torchrun_of_what_does_not_meet_in_its_store(script: str) -> None:
    where = ("--master-addr", "h0", "--master-port", "29400")
    _torchrun(script, ("--node-rank", "{rank}", *where))


def _torchrun(script: str, options: tuple[str, ...]) -> None:
    need()
    with Bed(HOSTS) as bed:
        started = []
        for rank, host in enumerate(bed.hosts):
            words = [sys.executable, "-m", "torch.distributed.run", "--nnodes", str(HOSTS)]
            words += [o.format(rank=rank) for o in options]
            words += ["--nproc-per-node", "1", "--no-python", *_command(bed, script)]
            started.append(bed.start(host, words, _environment()))
        _judge(bed, *started)


@pytest.mark.zoo
@pytest.mark.long
def test_a_rank_that_is_killed_below_torchrun_is_named_on_every_host() -> None:
    need()
    with Bed(2) as bed:
        started = []
        for rank, host in enumerate(bed.hosts):
            words = [
                sys.executable,
                "-m",
                "allaboard",
                "run",
                "--run-dir",
                str(bed.folder / f"run-{host}"),
            ]
            words += [
                "--coordinator",
                "h0:29777",
                "--",
                sys.executable,
                "-m",
                "torch.distributed.run",
            ]
            words += ["--nnodes", "2", "--nproc-per-node", "2", "--node-rank", str(rank)]
            words += ["--master-addr", "h0", "--master-port", "29400", str(DRILLS / "torch_ddp.py")]
            words += ["--fault", "killed-by-itself", "--guilty", "3"]
            task = {"SLURM_PROCID": str(rank), "SLURM_NTASKS": "2", "SLURM_JOB_ID": "7"}
            task |= {"ALLABOARD_SECRET": "of the job"}
            started.append(bed.start(host, words, _environment() | task))
        for process in started:
            process.wait(SECONDS)
        for host, process in zip(bed.hosts, started, strict=True):
            report = json.loads((bed.folder / f"run-{host}" / "report.json").read_text())
            found = [
                (f["rule"], f["who"][0]["rank"], f["who"][0]["host"]) for f in report["findings"]
            ]
            assert found == [("EXIT001", 3, "h1")], process.text()[-6000:]
