"""A preflight is ready only where all met; and the cluster that TensorFlow is told of."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest
from test_preflight_faces import found

from allaboard.facts import Outcome
from allaboard.facts.samples import (
    arrived_member,
    gathering_job,
    sample_declaration,
    sample_job,
    sample_member,
)
from allaboard.options.usage_error import UsageError
from allaboard.preflight.roll_call_passed import is_roll_call_complete
from allaboard.preflight.ssh_launch import remote_command
from allaboard.preflight.summary import preflight_exit_code
from allaboard.preflight.task import task_of_environment, task_variables
from allaboard.preflight.task_selection import select_task
from allaboard.report.preflight import as_text
from allaboard.rules.join001_never_came import RULE

SLURM = {
    "SLURM_PROCID": "3",
    "SLURM_NTASKS": "4",
    "SLURM_STEP_NODELIST": "h[0-1]",
    "SLURM_STEP_TASKS_PER_NODE": "2(x2)",
    "SLURM_NODEID": "1",
    "SLURM_LOCALID": "1",
}


def test_met_is_a_roll_call_of_the_declared_size() -> None:
    assert is_roll_call_complete(sample_job(sample_member(0)), 3)
    assert is_roll_call_complete(sample_job(arrived_member(0)), 3), (
        "the last look at it may be older"
    )
    assert not is_roll_call_complete(
        sample_job(sample_member(0, declared=sample_declaration(0, 1))), 3
    ), "a job of its own"
    assert not is_roll_call_complete(gathering_job(sample_member(0)), 3), "it went on alone"


def test_not_all_met_is_no_start() -> None:
    assert preflight_exit_code(Outcome.COMPLETED, (), 0, False) == 3
    assert preflight_exit_code(Outcome.COMPLETED, (), 0, True) == 0
    said = as_text(found(met=False, findings=(), leads=False))
    assert "would not start: this host saw no roll call of all 2 tasks" in said


def test_under_slurm_tensorflow_is_told_its_hosts() -> None:
    one = task_of_environment(SLURM, framework="tensorflow")
    assert one.cluster == {
        "worker:0": "h0:29500",
        "worker:1": "h0:29501",
        "worker:2": "h1:29500",
        "worker:3": "h1:29501",
    }
    told = json.loads(task_variables(one)["TF_CONFIG"])
    assert told["task"] == {"type": "worker", "index": 3} and len(told["cluster"]["worker"]) == 4


@pytest.mark.parametrize(
    "other",
    [
        {"SLURM_NODEID": "0"},  # --distribution=cyclic
        {"SLURM_STEP_TASKS_PER_NODE": ""},
        {"SLURM_NTASKS": "5"},
    ],
)
def test_tasks_that_are_on_nobody_knows_which_host_make_no_cluster(other: dict[str, str]) -> None:
    assert task_of_environment({**SLURM, **other}, framework="tensorflow").cluster == {}


def given(**changes: object) -> argparse.Namespace:
    fields: dict[str, object] = {
        "framework": "tensorflow", "quick": False, "output": None, "leashed": "", "coordinator": "",
        "format": "text", "timeout": 9.0, "bound": 9.0, "verbose": False,
        "tls_cert": None, "tls_key": None, "tls_ca": None,
    }  # fmt: skip
    return argparse.Namespace(**(fields | changes))


def test_without_hosts_tensorflow_has_no_collective(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "h0"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match="set TF_CONFIG as training does, or add --quick"):
        select_task(given(), "", False)
    assert select_task(given(quick=True), "", False).size == 2


def test_over_ssh_tensorflow_is_told_its_hosts() -> None:
    words = remote_command(given(), ["root@h0", "h1"], 1, "job")
    assert '"worker": ["h0:29500", "h1:29500"]' in words and "WORLD_SIZE" not in words
    assert "WORLD_SIZE=2" in remote_command(given(framework="torch"), ["h0", "h1"], 1, "job")
    first = remote_command(given(coordinator="10.0.0.9:7000"), ["h0", "h1"], 1, "job")
    assert '"worker": ["10.0.0.9:7000", "h1:7000"]' in first
    assert Path.cwd().as_posix() in words


def test_over_ssh_the_missing_rank_has_a_host_to_look_at() -> None:
    came = [
        arrived_member(r, declared=sample_declaration(r, 3, origin="--hosts a,root@b,c"))
        for r in (0, 2)
    ]
    (claim,) = RULE.check(gathering_job(*came, now=121.0))
    assert claim.fix.startswith("ssh -o BatchMode=yes root@b true   # rank 1 is started on root@b")
