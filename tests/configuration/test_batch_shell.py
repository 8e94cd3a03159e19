"""Whether an environment is that of a batch script, outside of Slurm's steps."""

from __future__ import annotations

import pytest

from allaboard.configuration.batch_shell import read_batch_shell

JOB = {"SLURM_JOB_ID": "512", "SLURM_NTASKS": "8", "SLURM_PROCID": "0"}


@pytest.mark.parametrize(
    ("more", "evidence"),
    [
        ({}, "SLURM_NTASKS=8, no SLURM_STEP_ID"),
        ({"SLURM_STEP_ID": "4294967290"}, "SLURM_NTASKS=8, SLURM_STEP_ID=4294967290"),
        ({"SLURM_STEP_ID": "0"}, ""),
        ({"SLURM_NTASKS": "1"}, ""),
        ({"OMPI_COMM_WORLD_SIZE": "8"}, ""),
        ({"SLURM_NTASKS": ""}, ""),
        ({"SLURM_JOB_ID": ""}, ""),
    ],
    ids=["sbatch", "salloc", "in a step", "one task", "mpirun", "no number of tasks", "no job"],
)
def test_a_batch_shell_is_recognised(more: dict[str, str], evidence: str) -> None:
    assert read_batch_shell({**JOB, **more}) == evidence
