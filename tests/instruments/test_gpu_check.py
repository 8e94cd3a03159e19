"""scripts/gpu-check: which steps run where, what it writes; its steps on a CPU for real."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[2] / "scripts" / "gpu_check"


@pytest.fixture(scope="module")
def gpu_check() -> Iterator[dict[str, ModuleType]]:
    """The modules of the script, which stand beside it, as Python sees them when it runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        yield {name: importlib.import_module(name) for name in ("machine", "steps", "training")}
        for path in FOLDER.glob("*.py"):
            sys.modules.pop(path.stem, None)


def reasons(
    gpu_check: dict[str, ModuleType], cpu: bool = False, **machine: object
) -> dict[str, str]:
    there = gpu_check["machine"].Machine(**machine)
    steps = gpu_check["steps"]
    return {s.name: steps.why_not(s, there, cpu) for s in steps.STEPS}


ALL = {
    "frameworks": ("torch", "torch-cuda", "tensorflow", "jax", "pynvml"),
    "programs": ("nvidia-smi", "dmesg"),
}


def test_without_a_gpu_no_step_runs(gpu_check: dict[str, ModuleType]) -> None:
    assert set(reasons(gpu_check, frameworks=("torch", "jax")).values()) == {"no GPU is visible"}


def test_one_gpu_runs_all_but_what_needs_two_or_is_not_installed(
    gpu_check: dict[str, ModuleType],
) -> None:
    skipped = {n: r for n, r in reasons(gpu_check, gpus=1, **ALL).items() if r}
    assert skipped == {
        "dcgm-health": "needs dcgmi",
        "ibstat": "needs ibstat",
        "torch-nccl-all": "needs two GPUs",
    }
    assert "torch-nccl-all" not in {n for n, r in reasons(gpu_check, gpus=8, **ALL).items() if r}


def test_a_torch_for_the_cpu_on_a_machine_with_a_gpu_is_said(
    gpu_check: dict[str, ModuleType],
) -> None:
    why = reasons(gpu_check, gpus=1, frameworks=("torch",), programs=("nvidia-smi",))
    assert why["torch-nccl-1"] == "needs torch-cuda" and why["tensorflow"] == "needs tensorflow"


def test_on_a_cpu_only_steps_with_such_a_form_run(gpu_check: dict[str, ModuleType]) -> None:
    why = reasons(gpu_check, cpu=True, frameworks=("torch",))
    assert [n for n, r in why.items() if not r] == ["torch-gloo", "gloo-stopped"]
    assert why["jax"] == "needs jax" and why["ras"] == "has no form without a GPU"


def test_what_a_feed_lacks_of_a_gpu_is_named(gpu_check: dict[str, ModuleType]) -> None:
    gpu = {
        "index": 0,
        "name": "H100",
        "memory_limit_nbytes": 80,
        "memory_nbytes": 5,
        "clock_mhz": 1,
    }
    rank = {"name": "worker 0", "device_memory": {"used_nbytes": 1}}
    lines = [
        {"kind": "hello"},
        {"snapshot": {"hosts": [{"host": "a", "gpus": [gpu]}], "ranks": [{"name": "worker 0"}]}},
        {"snapshot": {"hosts": [{"host": "a"}], "ranks": [rank]}},
    ]
    events = "\n".join(map(json.dumps, lines)) + '\n{"snapshot": {"ho'
    assert gpu_check["training"].missing_readings(events) == ["temperature_c", "power_w"]
    assert "device_memory of a rank" in gpu_check["training"].missing_readings("")


def run(*arguments: str, timeout: int = 60) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(FOLDER), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout)


def test_a_dry_run_writes_the_plan(tmp_path: Path) -> None:
    done = run("--dry-run", "--cpu", "--out", str(tmp_path), timeout=200)
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "results.json").read_text())
    states = {r["name"]: r["state"] for r in document["results"]}
    assert states["torch-gloo"] == "would run" and states["ras"] == "skipped"
    assert "| torch-gloo | two ranks train with gloo |" in (tmp_path / "results.md").read_text()


@pytest.mark.zoo
def test_the_steps_with_gloo_hold_on_this_machine(tmp_path: Path) -> None:
    steps = ("--step", "torch-gloo", "--step", "gloo-stopped")
    done = run("--cpu", *steps, "--out", str(tmp_path), timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    states = [r["state"] for r in json.loads((tmp_path / "results.json").read_text())["results"]]
    assert states == ["held", "held"]
