"""A worker whose clock is another one: in a time namespace of its own, or under a library that fakes it."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from allaboard.blackbox.clock import MAX_CLOCK_DISTANCE_S, clock_offset
from allaboard.probe import layout
from probed import RENDEZVOUS, Program, fake_torch
from testbed.requirements import fake_clock


def test_whoever_was_born_by_our_clock_has_it() -> None:
    now = time.monotonic()
    for born in (now, now - 0.01, now + 0.5):
        assert clock_offset(born, os.getpid()) == 0.0


@pytest.mark.parametrize("apart", [600.0, -1e5, 3e8])
def test_nobody_is_born_later_than_now_or_before_the_kernel_started_it(apart: float) -> None:
    assert abs(clock_offset(time.monotonic() + apart, os.getpid()) - apart) < 1.0


@pytest.mark.parametrize("born", [math.nan, math.inf, -math.inf, 1e300, -2 * MAX_CLOCK_DISTANCE_S])
def test_a_hostile_birth_is_no_clock(born: float) -> None:
    assert clock_offset(born, os.getpid()) == 0.0


def test_a_process_that_is_gone_has_ours() -> None:
    assert clock_offset(-1e6, 2**22 + 1) == 0.0


CODE = """
import sys, time, torch.distributed as dist, _allaboard_probe.member as m
dist.init_process_group("gloo")
m.step()
def inside():
    print(time.monotonic(), flush=True)
    sys.stdin.readline()
dist.all_reduce(inside)
"""


@pytest.mark.parametrize("way", ["namespace", "library"])
@pytest.mark.parametrize("apart", [600, -600])
def test_what_it_writes_is_read_by_ours(program: Program, way: str, apart: int) -> None:
    command = ["unshare", "--time", "--monotonic", str(apart)]
    library = fake_clock()
    if way == "namespace" and _fails([*command, "true"]):
        pytest.skip("not on this machine: time namespaces")
    if way == "library" and library is None:
        pytest.skip("not on this machine: libfaketime")
    fake_torch(program.folder)
    program.environment = dict(RENDEZVOUS)
    if way == "library":
        program.environment |= {"LD_PRELOAD": str(library), "FAKETIME": f"{apart:+d}s"}
    else:
        starter = program.folder / "python"
        starter.write_text(f'#!/bin/sh\nexec {" ".join(command)} {sys.executable} "$@"\n')
        starter.chmod(0o755)
        program.interpreter = str(starter)
    before = time.monotonic()
    process = program.start(CODE)
    assert process.stdout is not None
    there = float(process.stdout.readline())
    now = time.monotonic()
    assert abs(there - now) > 300, "its clock is another one"
    box = program.box(process.pid)
    seen = box.read_snapshot()
    assert seen.op is not None and seen.raised is None
    for at in (seen.phase_since, seen.step_at, seen.op.since):
        assert before - 1 < at < now + 20
    assert 0 <= seen.inside < 20
    box.write_heartbeat(now, 1)
    heard = layout.AGENT.unpack_from(box.map, layout.AGENT_AT)[0]
    assert abs(heard - there) < 60, "the agent's heartbeat is told by its clock"


def _fails(command: list[str]) -> bool:
    if shutil.which(command[0]) is None:
        return True
    return subprocess.run(command, capture_output=True, check=False).returncode != 0


JUMPS = """
import os, select, sys, time
from pathlib import Path
import _allaboard_probe.member as m, torch.distributed as dist
dist.init_process_group("gloo")
clock = Path(os.environ["FAKETIME_TIMESTAMP_FILE"])
for turn, seconds in enumerate(("+0", "+400", "-400", "+86400", "+0") * 2):
    if os.environ["RANK"] == "0":
        clock.write_text(seconds + "s")
    for _ in range(10):
        m.step()
        select.select([], [], [], 0.02)  # under this library `time.sleep` may fail
print("apart", int(time.time() - float(os.environ["BEGAN"])) // 1000, flush=True)
"""


def test_a_wall_clock_that_jumps_back_and_forth_accuses_nobody(tmp_path: Path) -> None:
    """Under all of them, the agent too: as where a time service sets the clock of the host."""
    library = fake_clock()
    if library is None:
        pytest.skip("not on this machine: libfaketime")
    script, clock, run = tmp_path / "train.py", tmp_path / "clock", tmp_path / "run"
    fake_torch(tmp_path)
    script.write_text(JUMPS)
    clock.write_text("+0s")
    environment = {**os.environ, "LD_PRELOAD": str(library), "FAKETIME_NO_CACHE": "1",
                   "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_TIMESTAMP_FILE": str(clock),
                   "BEGAN": str(time.time())}  # fmt: skip
    command = [
        sys.executable,
        "-m",
        "allaboard",
        "run",
        "-n",
        "2",
        "--run-dir",
        str(run),
        str(script),
    ]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((run / "report.json").read_text())
    assert report["findings"] == []
    assert [worker["step"] for worker in report["workers"]] == [100, 100]
