"""Names that are almost those of Slurm's variables."""

from __future__ import annotations

import pytest

from allaboard.facts.configuration.slurm_variables import SLURM_VARIABLES, meant_variable


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("SLURM_JOB_NODELIS", "SLURM_JOB_NODELIST"),
        ("SLURM_NODE_LIST", "SLURM_NODELIST"),
        ("SLRUM_PROCID", "SLURM_PROCID"),
        ("SLURM_PROC_ID", "SLURM_PROCID"),
        ("SLURM_TASK_PER_NODE", "SLURM_TASKS_PER_NODE"),
        ("SLURM_NUM_NODES", "SLURM_JOB_NUM_NODES"),
        ("SLURM_WORLD_SIZE", "SLURM_NTASKS"),
    ],
)
def test_a_slip_is_recognised(name: str, meant: str) -> None:
    assert meant_variable(name) == meant


@pytest.mark.parametrize(
    "name", ["SLURM_SCRATCH", "SLURMD_NODENAME", "SLURM_JOB_TMPDIR", "SLURM_GPU", "MASTER_ADDR"]
)
def test_a_name_of_its_own_is_none_of_slurm(name: str) -> None:
    assert meant_variable(name) == ""


def test_what_slurm_sets_is_meant_as_it_is() -> None:
    assert not [name for name in SLURM_VARIABLES if meant_variable(name)]
