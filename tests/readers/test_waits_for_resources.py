"""What Ray, Tune and vLLM write while they wait for resources, and where it is over."""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.facts import Finding
from allaboard.rules.engine.catalogue import load_catalogue

VLLM = (
    "INFO 05-02 11:00:{0} ray_utils.py:214] Waiting for creating a placement group of specs for {0} seconds. "
    "specs=[{{'node:10.2.0.4': 0.001, 'GPU': 1.0}}, {{'GPU': 1.0}}, {{'GPU': 1.0}}]. Check `ray status` to "
    "see if you have enough resources.\n"
)
SCHEDULED = (
    "(autoscaler +1m12s) Warning: The following resource request cannot be scheduled right now: "
    "{'GPU': 4.0}. This is likely due to all cluster resources being claimed by actors.\n"
)
FULFILLED = (
    "(autoscaler +12s) Error: No available node types can fulfill resource request {'GPU': 16.0}. Add "
    "suitable node types to this cluster to resolve this issue.\n"
)
TRIAL = (
    "2024-05-02 11:00:10 WARNING insufficient_resources_manager.py:128 -- Ignore this message if the cluster "
    "is autoscaling. You asked for 9.0 cpu and 8.0 gpu per trial, but the cluster only has 64.0 cpu and 4.0 "
    "gpu.\n"
)
STARTED = "INFO 05-02 11:03:10 ray_executor.py:153] use_ray_spmd_worker: False\n"
STEP = "(RayTrainWorker pid=4151) epoch 1 loss 2.1\n" * 2
CASES = [
    (VLLM.format(10) + VLLM.format(30), "no room for 3 GPUs, one of them on 10.2.0.4, for 30 s"),
    ("```\n" + VLLM.format(10) + "```\n", "no room for 3 GPUs"),
    (SCHEDULED * 2, "no room for 'GPU': 4.0"),
    (FULFILLED, "no kind of node that Ray's cluster may start has 'GPU': 16.0"),
    (TRIAL, "asks for 9.0 cpu and 8.0 gpu, and Ray's cluster has 64.0 cpu and 4.0 gpu"),
]


def findings(folder: Path, text: str) -> tuple[Finding, ...]:
    (folder / "job.log").write_text(text)
    return diagnose_paths([folder / "job.log"], load_catalogue()).findings


@pytest.mark.parametrize(("text", "says"), CASES)
def test_the_wait_with_which_a_log_ends_is_told(tmp_path: Path, text: str, says: str) -> None:
    (finding,) = findings(tmp_path, text)
    assert finding.rule == "JOIN001" and says in finding.summary
    assert finding.fix.startswith("ray status")
    assert not finding.who


@pytest.mark.parametrize("later", [STEP, STARTED * 14 + STEP])
@pytest.mark.parametrize(("text", "says"), CASES)
def test_a_wait_that_is_over_is_none(tmp_path: Path, text: str, says: str, later: str) -> None:
    assert not findings(tmp_path, text.replace("```\n", "") + later)


def test_an_engine_that_was_started_waits_no_more(tmp_path: Path) -> None:
    assert not findings(tmp_path, VLLM.format(10) + VLLM.format(30) + STARTED)
