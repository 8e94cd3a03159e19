"""What the environment says of a cluster that somebody else starts."""

from __future__ import annotations

import json

import pytest

from allaboard.configuration.launcher_context import (
    comparable_job_id,
    master_address,
    read_launcher_context,
)

CLUSTER = {"ps": ["d:1", "e:1"], "worker": ["b:1", "c:1"], "chief": ["a:1"]}


@pytest.mark.parametrize(
    ("job", "index", "rank"),
    [("chief", 0, 0), ("worker", 1, 2), ("ps", 0, 3), ("evaluator", 0, -1)],
)
def test_tasks_are_numbered_chief_first_and_servers_last(job: str, index: int, rank: int) -> None:
    text = json.dumps({"cluster": CLUSTER, "task": {"type": job, "index": index}})
    told = read_launcher_context({"TF_CONFIG": text})
    assert told is not None
    assert (told.address, told.rank) == ("a:1", rank)
    assert told.task_beside_cluster == ("evaluator:0" if job == "evaluator" else "")


def test_the_launchers_own_store_is_no_place_of_others() -> None:
    torchrun = {"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "h0", "MASTER_PORT": "29400"}
    told = read_launcher_context({**torchrun, "TORCHELASTIC_USE_AGENT_STORE": "True"})
    assert told is not None and told.has_launcher_store and told.address == ""
    assert master_address(torchrun) == "h0:29400"
    assert master_address({"MASTER_ADDR": "fe80::1", "MASTER_PORT": "1"}) == "[fe80::1]:1"
    assert master_address({"MASTER_ADDR": "h0"}) == ""


@pytest.mark.parametrize(
    ("more", "address"),
    [
        ({}, "h0:1234"),
        ({"MASTER_ADDR": "h9", "MASTER_PORT": "29500"}, "h0:1234"),
        ({"MASTER_ADDR": "h9", "TORCHELASTIC_USE_AGENT_STORE": "True"}, "h0:1234"),
        ({"JAX_COORDINATOR_ADDRESS": "h0"}, ""),
    ],
)
def test_where_processes_of_jax_meet_is_known_before_they_say_so(
    more: dict[str, str], address: str
) -> None:
    jax = {"JAX_COORDINATOR_ADDRESS": "h0:1234", "JAX_NUM_PROCESSES": "3", "JAX_PROCESS_ID": "1"}
    told = read_launcher_context(jax | more)
    assert told is not None
    assert (told.address, told.rank, told.world_size) == (address, 1, 3)


def test_whose_job_a_process_is_of() -> None:
    slurm = {"SLURM_JOB_ID": "41", "SLURM_STEP_ID": "2"}
    assert comparable_job_id({}, "ALLABOARD_JOB_ID=A") == ""
    assert (
        comparable_job_id({"ALLABOARD_JOB_ID": "B"}, "ALLABOARD_JOB_ID=A") == "ALLABOARD_JOB_ID=B"
    )
    assert (
        comparable_job_id({"ALLABOARD_JOB_ID": "a.2"}, "ALLABOARD_JOB_ID=a.1")
        == "ALLABOARD_JOB_ID=a.2"
    )
    assert comparable_job_id(slurm, "SLURM_JOB_ID=41.2") == "SLURM_JOB_ID=41.2"
    assert comparable_job_id(slurm, "SLURM_JOB_ID=40.2") == "SLURM_JOB_ID=41.2"
    assert comparable_job_id(slurm, "SLURM_JOB_ID=41.3") == "", (
        "an earlier step, or another beside ours"
    )
