"""`diagnose` of a real job of PyTorch's RPC whose function does not return, or whose functions wait for each
other."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from free_ports import free_port
from installed_frameworks import needs_torch

pytestmark = needs_torch
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
CIRCLE = """import os
import torch.distributed.rpc as rpc
rank = int(os.environ["RANK"])
def own_value():
    return 1
def ask_back(caller):
    print("runs", flush=True)
    return rpc.rpc_sync(caller, own_value, timeout=0)
options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=1)
rpc.init_rpc(f"w{rank}", rank=rank, world_size=2, rpc_backend_options=options)
for _ in range(1000):
    rpc.rpc_sync(f"w{1 - rank}", ask_back, args=(f"w{rank}",), timeout=0)
rpc.shutdown(timeout=0)
"""


@pytest.fixture(params=[JOB])
def ranks(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[list[int]]:
    """Two ranks; the first one waits for a function that runs in the second one."""
    script = tmp_path / "asks.py"
    script.write_text(request.param)
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


def _only_finding(pid: int) -> dict[str, Any]:
    """Return the only finding about the job of this process, as `diagnose --format json` writes it."""
    command = [sys.executable, "-m", "allaboard", "diagnose", str(pid), "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    answer = json.loads(done.stdout)
    if not answer["findings"] and re.search("hardly gets? a core", answer["conclusion"]):
        pytest.skip("not on this machine: cores that are free while it looks")
    assert answer["findings"], answer["conclusion"]
    (finding,) = answer["findings"]
    return cast("dict[str, Any]", finding)


@pytest.mark.alone  # a process that gets no core between two looks may be about to move
def test_the_rank_and_the_line_of_the_function_are_named_by_the_pid_of_its_caller(
    ranks: list[int],
) -> None:
    finding = _only_finding(ranks[0])
    assert finding["rule"] == "HANG030" and finding["certainty"] == "likely"
    assert finding["summary"] == (
        "worker 1 is asleep at asks.py:6 in score, in a function that it runs for a call of RPC; rank 0 "
        "waits for an answer"
    )
    assert [w["pid"] for w in finding["who"]] == ranks[1:]


@pytest.mark.alone  # as above
@pytest.mark.parametrize("ranks", [CIRCLE], indirect=True)
def test_functions_that_wait_for_each_others_threads_are_named_together(ranks: list[int]) -> None:
    finding = _only_finding(ranks[0])
    assert finding["rule"] == "HANG031" and finding["certainty"] == "likely"
    assert [w["pid"] for w in finding["who"]] == ranks
    assert any("ask_back" in e["observed"] for e in finding["evidence"])
