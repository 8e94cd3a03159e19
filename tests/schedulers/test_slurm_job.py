"""A Slurm job and its requeue, from its environment alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from allaboard.configuration.batch_time_limit import read_time_limit
from allaboard.facts import Retry, RetryAdvice
from allaboard.schedulers.slurm_job import SlurmJob, read_slurm_job
from allaboard.schedulers.slurm_requeue import (
    comment_command,
    decide_requeue,
    requeue_commands,
    run_commands,
)

JOB = SlurmJob(job_id="7", is_first_task=True, requeue_count=0)
BOTH = frozenset((Retry.HERE, Retry.ELSEWHERE))


def advice(verdict: Retry) -> RetryAdvice:
    return RetryAdvice(verdict=verdict, reason="worker 1 was killed", rule="EXIT001", hosts=("n2",))


@pytest.mark.parametrize(
    ("environment", "job"),
    [
        ({}, None),
        ({"SLURM_JOB_ID": "x"}, None),
        ({"SLURM_JOB_ID": "7"}, JOB),
        ({"SLURM_JOB_ID": "7", "SLURM_PROCID": "0"}, JOB),
        ({"SLURM_JOB_ID": "7", "SLURM_PROCID": "3"}, JOB._replace(is_first_task=False)),
        ({"SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": "2"}, JOB._replace(requeue_count=2)),
        # The task of an array has an id of its own, and a component of a heterogeneous job its leader's.
        ({"SLURM_JOB_ID": "7", "SLURM_ARRAY_JOB_ID": "5", "SLURM_ARRAY_TASK_ID": "2"}, JOB),
        ({"SLURM_JOB_ID": "8", "SLURM_JOB_ID_HET_GROUP_0": "7", "SLURM_HET_SIZE": "2"}, JOB),
    ],
)
def test_the_job_of_an_environment(environment: dict[str, str], job: SlurmJob | None) -> None:
    assert read_slurm_job(environment) == job


def test_nothing_is_requeued_that_was_not_asked_for() -> None:
    assert not decide_requeue(advice(Retry.HERE), JOB, frozenset(), 3).is_wanted
    assert not decide_requeue(None, JOB, BOTH, 3).is_wanted
    for verdict in (Retry.NEVER, Retry.RESOURCES):
        assert not decide_requeue(advice(verdict), JOB, BOTH, 3).is_wanted


def test_one_task_requeues_for_all_and_not_without_end() -> None:
    decision = decide_requeue(advice(Retry.HERE), JOB, BOTH, 3)
    assert decision == (True, "is requeued by --requeue-on here; requeue 1 of 3")
    assert not decide_requeue(
        advice(Retry.HERE), JOB._replace(is_first_task=False), BOTH, 3
    ).is_wanted
    last = decide_requeue(advice(Retry.HERE), JOB._replace(requeue_count=3), BOTH, 3)
    assert last == (False, "is not requeued: it was requeued 3 times (--max-requeues 3)")


@pytest.mark.parametrize(
    ("shown", "excluded"),
    [
        ("JobId=7 ExcNodeList=(null) NodeList=n[1-3]", "n2"),
        ("JobId=7 ExcNodeList=n[8-9] NodeList=n[1-3]", "n[8-9],n2"),
        ("", "n2"),
    ],
)
def test_nodes_that_were_excluded_stay_so(shown: str, excluded: str) -> None:
    assert requeue_commands(JOB, ["n2"], shown) == [
        ["scontrol", "requeue", "7"],
        ["scontrol", "update", "JobId=7", f"ExcNodeList={excluded}"],
    ]


def test_without_a_host_at_fault_no_node_is_excluded() -> None:
    assert requeue_commands(JOB, [], "") == [["scontrol", "requeue", "7"]]


def test_a_comment_is_one_short_line() -> None:
    words = comment_command(JOB, "EXIT002", "worker 1 raised\n\x1b[31m" + "x" * 500)
    assert words[:3] == ["scontrol", "update", "JobId=7"]
    assert words[3].startswith("Comment=allaboard: EXIT002 worker 1 raised ")
    assert words[3].isprintable() and len(words[3]) <= 208


def test_commands_stop_at_the_first_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "scontrol"
    program.write_text(
        '#!/bin/sh\necho "$*" >> "$0.log"; [ "$1" != requeue ] || { echo no >&2; exit 1; }\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert run_commands([["scontrol", "update", "a 'b"]]) == ""
    assert run_commands(requeue_commands(JOB, ["n2"], "")) == "no"
    assert (tmp_path / "scontrol.log").read_text() == "update a 'b\nrequeue 7\n"
    monkeypatch.setenv("PATH", "/nowhere")
    assert run_commands([["scontrol", "x"]]) == "scontrol is not in PATH"


def test_the_time_limit_is_slurms() -> None:
    job = {"SLURM_JOB_ID": "7", "SLURM_JOB_END_TIME": "1800000060"}
    assert read_time_limit(job, utc_s=1_800_000_000.0, now=500.0) == 560.0
    assert read_time_limit(job, utc_s=1_800_000_070.0, now=500.0) == 490.0
    for wrong in (
        {"SLURM_JOB_ID": "7"},
        {"SLURM_JOB_END_TIME": "1800000060"},
        {**job, "SLURM_JOB_END_TIME": "soon"},
        {**job, "SLURM_JOB_END_TIME": "2900000000"},
    ):
        assert read_time_limit(wrong, 1_800_000_000.0, 500.0) is None
