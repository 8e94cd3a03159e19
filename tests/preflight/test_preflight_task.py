"""What the environment says of the task that a preflight stands in for."""

from __future__ import annotations

import json

import pytest

from allaboard.preflight.task import UnstatedTaskError, task_of_environment, task_variables

TORCH = {"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "h0", "MASTER_PORT": "29600"}
SLURM = {"SLURM_PROCID": "2", "SLURM_NTASKS": "4", "SLURM_STEP_NODELIST": "h[0-3]"}
MPI = {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4"}
CLUSTER = {"ps": ["p:3"], "worker": ["a:1", "b:2"], "evaluator": ["e:4"]}


def tf(job: str, index: int) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": CLUSTER, "task": {"type": job, "index": index}})}


def test_torch() -> None:
    one = task_of_environment(TORCH)
    assert (one.framework, one.rank, one.size, one.meeting_address) == ("torch", 1, 4, "h0:29600")


def test_where_it_was_read_in_the_names_of_the_variables() -> None:
    assert task_of_environment(TORCH).origin == "RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT"
    assert task_of_environment(tf("worker", 0)).origin == "TF_CONFIG"


def test_slurm_alone_meets_on_its_first_node() -> None:
    one = task_of_environment(SLURM)
    assert (one.rank, one.size, one.meeting_address) == (2, 4, "h0:29500")
    assert task_variables(one)["MASTER_ADDR"] == "h0"


def test_the_users_own_place_wins() -> None:
    assert task_of_environment(TORCH, coordinator="[fd00::1]:7").meeting_address == "[fd00::1]:7"
    assert (
        task_variables(task_of_environment(MPI, coordinator="[fd00::1]:7"))["MASTER_ADDR"]
        == "fd00::1"
    )


def test_tensorflow_counts_servers_after_workers_and_leaves_the_evaluator_out() -> None:
    assert [
        task_of_environment(tf(*t)).rank for t in (("worker", 0), ("worker", 1), ("ps", 0))
    ] == [0, 1, 2]
    assert task_of_environment(tf("ps", 0)).size == 3
    assert task_of_environment(tf("ps", 0)).cluster == {
        "worker:0": "a:1",
        "worker:1": "b:2",
        "ps:0": "p:3",
    }


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({}, "nothing here says which task"),
        (MPI, "add --coordinator HOST:PORT"),
        ({**TORCH, "RANK": "4"}, "ranks count from 0 to 3"),
        (tf("worker", 5), "worker 5 is no task of the cluster"),
        (tf("evaluator", 0), "evaluator 0 is no task"),
    ],
)
def test_what_is_missing_is_said(variables: dict[str, str], said: str) -> None:
    with pytest.raises(UnstatedTaskError, match=said):
        task_of_environment(variables)
