"""`allaboard diagnose PID…` of real PyTorch ranks that nobody watched: one is missing, one is asleep."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from free_ports import free_port

SCRIPT = """import os, time
import torch, torch.distributed as dist
def load():
    time.sleep(600)
print("up", flush=True)
dist.init_process_group("gloo")
one = torch.ones(1)
dist.all_reduce(one)
print("joined", flush=True)
if dist.get_rank() == 1:
    load()
dist.all_reduce(one)
"""


@pytest.fixture
def started(tmp_path: Path) -> Iterator[list[subprocess.Popen[str]]]:
    ranks: list[subprocess.Popen[str]] = []
    yield ranks
    for process in ranks:
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def start(folder: Path, ranks: list[subprocess.Popen[str]], count: int, size: int) -> list[str]:
    script = folder / "train.py"
    script.write_text(SCRIPT)
    port = str(free_port())
    for rank in range(count):
        told = {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": port, "OMP_NUM_THREADS": "1"}  # fmt: skip
        ranks.append(
            subprocess.Popen(
                [sys.executable, str(script)],
                env={**os.environ, **told},
                stdout=subprocess.PIPE,
                text=True,
            )
        )
    return [str(p.pid) for p in ranks]


def found(pids: list[str], rule: str, patience: float = 60.0) -> dict[str, object]:
    """The finding of this rule, once the ranks have come to stand."""
    deadline = time.monotonic() + patience
    while True:
        command = [sys.executable, "-m", "allaboard", "diagnose", *pids, "--format", "json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        told = json.loads(done.stdout)
        rules = {f["rule"]: f for f in told["findings"]}
        if rule in rules or time.monotonic() > deadline:
            assert list(rules) == [rule], done.stdout
            one: dict[str, object] = rules[rule]
            return one


@pytest.mark.zoo
def test_a_rank_that_nobody_started(tmp_path: Path, started: list[subprocess.Popen[str]]) -> None:
    pids = start(tmp_path, started, 2, 3)
    for process in started:
        assert process.stdout is not None and process.stdout.readline() == "up\n"
    finding = found(pids, "JOIN001")
    assert finding["certainty"] == "likely"
    assert [w["rank"] for w in finding["who"]] == [2]  # type: ignore[attr-defined]


@pytest.mark.zoo
def test_a_rank_that_is_not_in_the_collective(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    pids = start(tmp_path, started, 3, 3)
    for process in started:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["up\n", "joined\n"]
    finding = found(pids, "HANG005")
    assert [w["rank"] for w in finding["who"]] == [1]  # type: ignore[attr-defined]
    assert "asleep at train.py:4 in load" in str(finding["summary"])
