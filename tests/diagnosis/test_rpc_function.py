"""`diagnose` of a real job of PyTorch's RPC whose function does not return."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from free_ports import free_port

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="not on this machine: torch"
)
JOB = """import os, time
import torch.distributed.rpc as rpc
rank = int(os.environ["RANK"])
def score():
    print("runs", flush=True)
    time.sleep(600)
rpc.init_rpc(f"w{rank}", rank=rank, world_size=2)
if rank == 0:
    rpc.rpc_async("w1", score, timeout=0).wait()
rpc.shutdown(timeout=0)
"""


@pytest.fixture
def ranks(tmp_path: Path) -> Iterator[list[int]]:
    """Two ranks; the first one waits for a function that sleeps in the second one."""
    script = tmp_path / "asks.py"
    script.write_text(JOB)
    port = str(free_port())
    started: list[subprocess.Popen[str]] = []
    for number in range(2):
        variables = {"RANK": str(number), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                     "MASTER_PORT": port}  # fmt: skip
        process = subprocess.Popen(
            [sys.executable, str(script)],
            env={"PATH": os.environ["PATH"], **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        started.append(process)
    assert started[1].stdout is not None and started[1].stdout.readline() == "runs\n"
    yield [p.pid for p in started]
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.mark.alone  # a process that gets no core between two looks may be about to move
def test_the_rank_and_the_line_of_the_function_are_named_by_the_pid_of_its_caller(
    ranks: list[int],
) -> None:
    command = [sys.executable, "-m", "allaboard", "diagnose", str(ranks[0]), "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    answer = json.loads(done.stdout)
    if not answer["findings"] and re.search("hardly gets? a core", answer["conclusion"]):
        pytest.skip("not on this machine: cores that are free while it looks")
    assert answer["findings"], answer["conclusion"]
    (finding,) = answer["findings"]
    assert finding["rule"] == "HANG030" and finding["certainty"] == "likely"
    assert finding["summary"] == (
        "worker 1 is asleep at asks.py:6 in score, in a function that it runs for a call of RPC; rank 0 "
        "waits for an answer"
    )
    assert [w["pid"] for w in finding["who"]] == ranks[1:]
