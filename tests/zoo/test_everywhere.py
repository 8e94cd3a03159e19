"""ALLABOARD=1: the roll call and the watch under somebody else's launcher, with no command changed."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
import tomllib
from pathlib import Path

import pytest

from allaboard.hosts import proc
from installed_python import make_installed_python

ROOT = Path(__file__).parents[2]
PTH = ROOT / "src" / "allaboard.pth"
TRAINS = """
import os, sys, time, torch, torch.distributed as dist
if "before" in sys.argv and os.environ["RANK"] == "1": time.sleep(3); raise ValueError("no data")
dist.init_process_group("gloo")
tensor = torch.ones(4)
for step in range(int(sys.argv[1])):
    dist.all_reduce(tensor); tensor.fill_(1.0); time.sleep(0.01)
    if step == 20 and dist.get_rank() == 1:
        if "stop" in sys.argv: os.kill(os.getpid(), 19)
        if "kill" in sys.argv: os.kill(os.getpid(), 9)
        if "leave" in sys.argv: sys.exit()
        if "exit" in sys.argv: sys.exit(3)
print("trained", dist.get_rank(), flush=True)
dist.destroy_process_group()
"""
WAITS = """
import os, torch.distributed as dist
dist.init_process_group("gloo")
if os.fork() == 0:
    os._exit(0)
met = 0
try:
    while True:
        os.wait()
        met += 1
except ChildProcessError:
    os.write(1, b"%d child\\n" % met)  # whole, since both ranks write to one pipe
dist.barrier(); dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter whose site-packages has what a wheel puts there."""
    return make_installed_python(tmp_path_factory.mktemp("env"))


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", **more}


def test_the_wheel_brings_the_file() -> None:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = told["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included == {"src/allaboard.pth": "allaboard.pth"}
    assert len(PTH.read_text().splitlines()) == 1


def test_without_the_variable_it_costs_microseconds(python: str) -> None:
    script = "import sys; print([m for m in sys.modules if 'allaboard' in m])"
    done = subprocess.run(
        [python, "-c", script], capture_output=True, text=True, check=True, env=environment()
    )
    assert done.stdout == "[]\n"
    line, rounds = compile(PTH.read_text(), "pth", "exec"), 10_000
    began = time.perf_counter()
    for _ in range(rounds):
        exec(line, {})
    assert (time.perf_counter() - began) / rounds < 100e-6


def test_a_program_that_never_joins_is_left_alone(python: str) -> None:
    done = subprocess.run(
        [python, "-c", "import subprocess, sys; print(subprocess.run([sys.executable, '-V']))"],
        capture_output=True, text=True, check=True, env=environment(ALLABOARD="1"),
    )  # fmt: skip
    assert "allaboard" not in done.stderr


def launcher(python: str, script: Path, *words: str) -> list[str]:
    torchrun = [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    return [*torchrun, str(script), *words]


@pytest.mark.zoo
def test_under_torchrun(python: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAINS)
    done = subprocess.run(
        launcher(python, script, "30"),
        capture_output=True, text=True, timeout=120,
        env=environment(ALLABOARD="1", ALLABOARD_RUN_DIR=str(tmp_path / "runs")),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    # Both write to one pipe, word by word.
    assert sorted(re.findall(r"\d|trained", done.stdout)) == ["0", "1", "trained", "trained"]
    assert done.stderr.count("all 2 ready") == 1, done.stderr
    assert not [w for w in done.stderr.split() if w.startswith(("HANG", "JOIN", "NET", "EXIT"))]
    # The agents go on for a moment; the one of rank 0 writes the report of all.
    until = time.monotonic() + 30
    while not (reports := [*tmp_path.glob("runs/2*/report.json")]):
        assert time.monotonic() < until
        time.sleep(0.1)
    assert '"outcome": "completed"' in reports[0].read_text()
    assert len([*tmp_path.glob("runs/2*")]) == 1


@pytest.mark.zoo
def test_who_waits_for_every_child_goes_on(python: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(WAITS)
    done = subprocess.run(
        launcher(python, script), capture_output=True, text=True, timeout=120,
        env=environment(ALLABOARD="1", PYTHONDEVMODE="1"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("1 child") == 2
    assert done.stderr.count("all 2 ready") == 1, done.stderr
    assert "subprocess" not in done.stderr  # an agent that is not waited for


@pytest.mark.zoo
def test_a_rank_that_stops_is_named(python: str, tmp_path: Path) -> None:
    script, said = tmp_path / "train.py", tmp_path / "said"
    script.write_text(TRAINS)
    with said.open("w") as sink:
        process = subprocess.Popen(
            launcher(python, script, "100000", "stop"),
            stderr=sink, env=environment(ALLABOARD="1"),
        )  # fmt: skip
    try:
        until = time.monotonic() + 60
        while "HANG001" not in said.read_text():
            assert time.monotonic() < until and process.poll() is None, said.read_text()
            time.sleep(0.1)
        time.sleep(2.0)  # for the agents of the other ranks
    finally:
        for pid in (process.pid, *proc.descendants_of(process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
    assert said.read_text().count("HANG001 stopped: worker 1 is stopped") == 1


@pytest.mark.zoo
@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("kill", "EXIT001 killed: worker 1 was killed by SIGKILL"),
        (
            "leave",
            "EXIT004 left-early: worker 1 exited with code 0 while rank 0 was still training",
        ),
        ("before", "JOIN001 never-came: rank 1 has not joined"),
        # Another code than 0 may be of torchrun's making: it ends the others where one has failed.
        ("exit", "EXIT004 left-early: worker 1 exited by itself (exit code unknown)"),
    ],
)
def test_a_rank_that_ends_is_named_once(python: str, tmp_path: Path, how: str, told: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAINS)
    done = subprocess.run(
        launcher(python, script, "100000", how),
        capture_output=True, text=True, timeout=120, env=environment(ALLABOARD="1"),
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.count(told) == 1, done.stderr
    assert (
        len(re.findall(r"^[\d:]+ (?:error|warning|info) [A-Z]+\d{3} ", done.stderr, re.MULTILINE))
        == 1
    ), done.stderr
