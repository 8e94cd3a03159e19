"""Parameter servers under a real Slurm: every task runs `allaboard run`, and Slurm alone describes them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from allaboard.drills.run_drill import JOBS
from bedded import need
from testbed import Bed, slurm

JOB = Path(__file__).parent / "jobs" / "slurm_ps.py"


@pytest.mark.zoo
@pytest.mark.long
def test_servers_are_ended_when_the_workers_are_done() -> None:
    need(*slurm.NEEDS)
    with Bed(3) as bed:
        service = slurm.Slurm(bed)
        ours = [sys.executable, "-m", "allaboard", "run", "--run-dir"]
        each = " ".join(
            [*ours, f"{bed.folder}/run-$SLURM_PROCID", str(JOB), str(JOBS / "tf1_ps.py")]
        )
        words = ["srun", "-N3", "-n3", "--mpi=none", "bash", "-c", each]
        process = bed.start("h0", words, service.environment)
        assert process.wait(120) == 0, process.text()
        said = process.text()
        assert "all 3 ready" in said, said
        assert "worker 0, worker 1 ended with exit code 0; ending what serves: ps 0" in said, said
