"""A real Slurm: a failed job goes back into its queue, without the host at fault; a time limit is no hang."""

from __future__ import annotations

import json
import shlex
import sys
import textwrap
from pathlib import Path

import pytest

from bedded import need
from multihost_drills.contract import MEETING_PORT
from testbed import Bed, slurm
from testbed.wait_until import until

pytestmark = pytest.mark.zoo
SECONDS = 120
SCRIPT = """\
import os, sys, time
if "SLURM_RESTART_COUNT" in os.environ:
    sys.exit(0)
if os.environ["RANK"] == "1":
    raise RuntimeError("CUDA error: uncorrectable ECC error encountered")
time.sleep(3)
sys.exit(7)
"""


def batch_script(bed: Bed, program: str, *options: str, head: str = "", more: str = "") -> Path:
    """Write a batch script whose step runs this program once on each of two nodes."""
    train = bed.folder / "train.py"
    train.write_text(program)
    run = shlex.join([sys.executable, "-m", "allaboard", "run", *options])
    rank = "RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID"
    folder = f"--run-dir {bed.folder}/run-${{SLURM_RESTART_COUNT:-0}}-$(hostname)"
    file = bed.folder / "job.sh"
    file.write_text(
        textwrap.dedent(f"""\
        #!/bin/bash
        #SBATCH --nodes=2 --ntasks=2 --output={bed.folder}/out.txt --open-mode=append {head}
        export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
        export MASTER_PORT={MEETING_PORT}
        {more}
        srun --mpi=none bash -c '{rank} exec {run} {folder} {train}'
        """)
    )
    return file


class Queue:
    """The commands of a user at this Slurm."""

    def __init__(self, bed: Bed, service: slurm.Slurm) -> None:
        self._bed = bed
        self._environment = service.environment

    def ask(self, *words: str) -> str:
        process = self._bed.start("h0", list(words), self._environment)
        process.wait(SECONDS)
        return process.text()

    def field(self, job: str, name: str) -> str:
        shown = self.ask("scontrol", "show", "job", "-o", job)
        return next((w.partition("=")[2] for w in shown.split() if w.startswith(f"{name}=")), "")

    def submit(self, script: Path) -> str:
        return self.ask("sbatch", "--parsable", str(script)).split()[-1]

    def wait_for(self, job: str, name: str, value: str) -> None:
        until(lambda: self.field(job, name) == value, (), f"{name}={value}", SECONDS)


def test_a_failed_job_is_requeued_without_the_host_at_fault() -> None:
    need(*slurm.NEEDS)
    with Bed(3) as bed:
        queue = Queue(bed, slurm.Slurm(bed))
        options = ("--requeue-on", "here,elsewhere", "--slurm-comment", "--exit-codes", "scheduler")
        job = queue.submit(batch_script(bed, SCRIPT, *options))
        until(lambda: queue.field(job, "ExcNodeList") == "h1", (), "the exclusion", SECONDS)
        assert queue.field(job, "Restarts") == "1"
        assert "EXIT002" in queue.ask("scontrol", "show", "job", "-o", job)
        report = json.loads((bed.folder / "run-0-h0" / "report.json").read_text())
        assert report["retry"]["verdict"] == "elsewhere" and report["exit_code"] == 181
        # Slurm lets a requeued job wait for two minutes from its end: its nodes refuse a credential that is
        # not younger, by whole seconds, than the end of the last try. Three seconds are enough for that.
        queue.wait_for(job, "JobState", "PENDING")
        queue.ask("scontrol", "update", f"JobId={job}", "StartTime=now+3")
        queue.wait_for(job, "JobState", "COMPLETED")
        assert queue.field(job, "NodeList") == "h[0,2]", (bed.folder / "out.txt").read_text()


def test_nothing_is_requeued_unless_it_was_asked_for() -> None:
    need(*slurm.NEEDS)
    with Bed(3) as bed:
        queue = Queue(bed, slurm.Slurm(bed))
        job = queue.submit(batch_script(bed, SCRIPT, "--exit-codes", "scheduler"))
        queue.wait_for(job, "JobState", "FAILED")
        assert queue.field(job, "ExitCode") == "181:0"
        assert (queue.field(job, "Restarts"), queue.field(job, "Comment")) == ("0", "")
        assert "sbatch --exclude=h1 SCRIPT" in (bed.folder / "out.txt").read_text()


@pytest.mark.long
def test_the_end_of_a_job_by_its_time_limit_is_no_hang() -> None:
    need(*slurm.NEEDS)
    with Bed(2) as bed:
        queue = Queue(bed, slurm.Slurm(bed))
        # Slurm sets the variable itself since 23.02.
        end = 'export SLURM_JOB_END_TIME=$(date -d "$(squeue -h -j $SLURM_JOB_ID -o %e)" +%s)'
        program = "import time\ntime.sleep(600)\n"
        script = batch_script(bed, program, "--requeue-on", "here", head="--time=1", more=end)
        job = queue.submit(script)
        queue.wait_for(job, "JobState", "TIMEOUT")
        for host in bed.hosts:
            report = json.loads((bed.folder / f"run-0-{host}" / "report.json").read_text())
            assert report["outcome"] == "interrupted", report
            assert "EXIT013" in [f["rule"] for f in report["findings"]], report["findings"]
            assert not [f for f in report["findings"] if f["severity"] == "error"]
        assert queue.field(job, "Restarts") == "0"


HANDLES = """\
import signal, sys, time
def save(*_):
    time.sleep(1)
    sys.exit(85)
signal.signal(signal.SIGUSR1, save)
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("program", "told"),
    [
        (HANDLES, "exited with code 85 after SIGUSR1"),
        ("", "killed by SIGUSR1, for which no handler was set"),
    ],
    ids=["it saves and exits", "no handler"],
)
def test_the_signal_before_the_time_limit(program: str, told: str) -> None:
    need(*slurm.NEEDS)
    with Bed(2) as bed:
        queue = Queue(bed, slurm.Slurm(bed))
        end = 'export SLURM_JOB_END_TIME=$(date -d "$(squeue -h -j $SLURM_JOB_ID -o %e)" +%s)'
        sleeps = program + "import time\nwhile True:\n    time.sleep(1)\n"
        script = batch_script(bed, sleeps, head="--time=2 --signal=USR1@40", more=end)
        job = queue.submit(script)
        queue.wait_for(job, "JobState", "FAILED")
        for host in bed.hosts:
            report = json.loads((bed.folder / f"run-0-{host}" / "report.json").read_text())
            findings = {f["rule"]: f["summary"] for f in report["findings"]}
            assert told in findings.get("EXIT013", ""), report["findings"]
            assert not {"EXIT001", "EXIT003", "HANG005"} & findings.keys(), findings
