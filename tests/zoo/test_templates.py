"""The lines of docs/templates.md, on the scripts that stand beside them."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bedded import need
from free_ports import free_port
from testbed import Bed, slurm

pytestmark = pytest.mark.zoo
ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
PAGE = (ROOT / "docs" / "templates.md").read_text()
LAUNCHERS = ("torchrun", "accelerate")
NEEDS = {"accelerate": "accelerate", "lightning": "lightning", "hf_trainer": "transformers"}


def lines(title: str) -> list[str]:
    """The command lines below a title of the page."""
    part = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0].replace("\\\n", " ")
    return [re.sub(r"\s+", " ", m[1]) for m in re.finditer(r"^\$ (.*)", part, re.M)]


def marked(line: str) -> object:
    """What is not part of every installation, and more than two of the lines, is for the long run."""
    kind = next(k for k in NEEDS if f"{k}_train" in line)
    short = kind == "accelerate" and line.startswith("allaboard run")
    return pytest.param(line, kind, marks=[] if short else [pytest.mark.long])


def started(line: str, tmp_path: Path, **more: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **more}
    environment["PATH"] = f"{BIN}{os.pathsep}{environment['PATH']}"
    environment["VIRTUAL_ENV"] = str(BIN.parent)
    # Their answers to questions that accelerate would ask, and a port that is free here.
    line = line.replace("launch ", "launch --mixed_precision no --dynamo_backend no ")
    return subprocess.Popen(
        ["bash", "-c", line.replace("examples/", f"{ROOT}/examples/")],
        cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


@pytest.mark.parametrize(("line", "kind"), [marked(w) for w in lines("One host")])
def test_on_one_host(line: str, kind: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(NEEDS[kind]) is None:
        pytest.skip(f"{NEEDS[kind]} is not installed; pip install 'allaboard[templates]'")
    if "launch" in line:
        line = line.replace("launch ", f"launch --main_process_port {free_port()} ")
    process = started(line, tmp_path)
    said, _ = process.communicate(timeout=200)
    assert process.returncode == 0, said
    assert "trained on 2 processes" in said, said
    # ALLABOARD=1 asks for the file that an installed wheel brings; its own test has it.
    assert "ALLABOARD=1" in line or "all 2 ready" in said, said


@pytest.mark.long
@pytest.mark.parametrize("line", [w for w in lines("Several hosts") if w.startswith(LAUNCHERS)])
def test_on_two_hosts(line: str, tmp_path: Path) -> None:
    """Two launchers on one machine, which each believe to be a host's."""
    kind = next(k for k in NEEDS if f"{k}_train" in line)
    if importlib.util.find_spec(NEEDS[kind]) is None:
        pytest.skip(f"{NEEDS[kind]} is not installed; pip install 'allaboard[templates]'")
    line = line.replace("node0", "127.0.0.1").replace("29500", str(free_port()))
    second = re.sub(r"(--node-rank|--machine_rank) 0", r"\1 1", line)
    running = [started(each, tmp_path) for each in (line, second)]
    said = [process.communicate(timeout=250)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0], "\n".join(said)
    assert "trained on 4 processes" in "".join(said), said


@pytest.mark.long
def test_under_slurm(tmp_path: Path) -> None:
    """The lines for a batch script, in one, under a real Slurm of two nodes."""
    need(*slurm.NEEDS)
    advised = [w for w in lines("Several hosts") if w.startswith(("export", "srun"))]
    text = "\n".join(["#!/bin/bash", *advised]).replace("examples/", f"{ROOT}/examples/")
    batch = tmp_path / "job.sh"
    batch.write_text(text.replace("srun ", "srun --mpi=none "))
    with Bed(2) as bed:
        service = slurm.Slurm(bed)
        where = {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "VIRTUAL_ENV": str(BIN.parent)}
        said = bed.folder / "said.txt"
        words = ["sbatch", "--wait", "-N2", "--ntasks-per-node=2", f"--output={said}", str(batch)]
        process = bed.start(
            "h0", words, {**service.environment, **where, "OMP_NUM_THREADS": "1"}, folder=bed.folder
        )
        code = process.wait(250)
        assert code == 0, process.text() + (said.read_text() if said.exists() else "")
        assert "trained on 4 processes" in said.read_text(), said.read_text()
        assert "all 4 ready" in said.read_text(), said.read_text()
