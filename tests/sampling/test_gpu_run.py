"""A job on a host with GPUs, as a library with NVML's symbols shows them, and with one that does not work."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCE = Path(__file__).parents[1] / "hosts" / "fake_nvml.c"
JOB = """
import pathlib, time
while not pathlib.Path("stop").exists():
    time.sleep(0.2)
print("done")
"""
MAX_WAIT_S = 150
"""Seconds for which is waited for what the agent says of the GPUs: the machine may be busy."""
COMMAND = """
import sys
from pathlib import Path
from allaboard.sampling import gpu_watcher
from allaboard.cli import main
gpu_watcher.DRIVER_FILES = (Path("/dev/null"),)  # this host shows a driver
sys.exit(main())
"""


class Ended(NamedTuple):
    """A job that has ended."""

    code: int
    output: str
    errors: str
    events: Path


def run(folder: Path, fault: str, is_enough: Callable[[Path, str], bool]) -> Ended:
    """Run a job until ``is_enough`` of its events and of what the agent has printed."""
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    if shutil.which("gcc") is None:
        pytest.skip("no gcc that would compile the library")
    library = folder / "libnvidia-ml.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-o", library, SOURCE], check=True)
    (folder / "job.py").write_text(JOB)
    events, output, errors = (folder / name for name in ("events.jsonl", "output", "errors"))
    words = ["run", "-n", "1", "--run-dir", folder / "run", "--events", events, folder / "job.py"]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder), "FAKE_NVML": fault}
    with (
        output.open("w") as out,
        errors.open("w") as err,
        subprocess.Popen(
            [sys.executable, "-c", COMMAND, *map(str, words)],
            env=environment,
            cwd=folder,
            stdout=out,
            stderr=err,
        ) as process,
    ):
        deadline = time.monotonic() + MAX_WAIT_S
        while time.monotonic() < deadline and process.poll() is None:
            if events.exists() and is_enough(events, errors.read_text()):
                break
            time.sleep(0.2)
        (folder / "stop").touch()
        code = process.wait(MAX_WAIT_S)
    return Ended(code, output.read_text(), errors.read_text(), events)


def gpus_in(events: Path) -> list[dict[str, object]]:
    """Return the GPUs of the last snapshot that has some."""
    lines = events.read_text().split("\n")[:-1]  # the last one may not be whole
    snapshots = [json.loads(line).get("snapshot") for line in lines]
    found = [h["gpus"] for s in snapshots if s for h in s.get("hosts", ()) if h.get("gpus")]
    return found[-1] if found else []


def test_a_gpu_that_fails_is_a_finding_while_the_job_runs(tmp_path: Path) -> None:
    ended = run(tmp_path, "xid", lambda _, errors: "RES008" in errors)
    assert "RES008 gpu-failed: GPU 0 of " in ended.errors, ended.errors
    assert "has fallen off the bus (Xid 79)" in " ".join(ended.errors.split())
    assert ended.code == 0 and "done" in ended.output  # it is likely only: the job trains on


def test_the_gpus_of_a_job_are_shown(tmp_path: Path) -> None:
    ended = run(tmp_path, "", lambda events, _: bool(gpus_in(events)))
    assert ended.code == 0 and "done" in ended.output, ended.errors
    assert [(g["index"], g.get("slowed_by", "")) for g in gpus_in(ended.events)] == [
        (0, "too hot (hardware)"),
        (1, ""),
    ]


def test_a_job_trains_on_beside_a_driver_of_another_version(tmp_path: Path) -> None:
    ended = run(tmp_path, "mismatch", lambda _, errors: "GPUs" in errors)
    assert ended.code == 0 and "done" in ended.output, ended.errors
    assert ended.errors.count("the GPUs are not watched: NVML: ") == 1
    assert gpus_in(ended.events) == []


def test_a_driver_that_hangs_delays_neither_the_job_nor_its_end(tmp_path: Path) -> None:
    ended = run(tmp_path, "hang", lambda events, _: events.read_text().count("\n") > 8)
    assert ended.code == 0 and "done" in ended.output, ended.errors
    assert gpus_in(ended.events) == []
