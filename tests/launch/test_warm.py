"""A process that waits becomes the task that it is told to be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from allaboard.launch.serving import script_imports, standby

SCRIPT = b"""
import os
os.environ["A"] = "1"
os.environ.setdefault("B", "2")
os.environ["C"] = str(3)
import numpy as np
from tensorflow.compat import v1
from . import own
if True:
    import torch
"""


def test_what_the_top_level_does_is_done_in_its_order() -> None:
    assert script_imports.early_steps(SCRIPT) == [
        ("os", None, False),
        ("A", "1", False),
        ("B", "2", True),
        ("numpy", None, False),
        ("tensorflow.compat", None, False),
    ]


@pytest.mark.parametrize("text", [b"", b"x = (", b"\0", b"\xff\xfe"])
def test_what_is_not_python_tells_nothing(text: bytes) -> None:
    assert script_imports.early_steps(text) == []


@pytest.mark.parametrize("way", ["script", "module"])
def test_it_runs_as_if_it_had_been_started_so(tmp_path: Path, way: str) -> None:
    script = tmp_path / "task.py"
    script.write_text(
        "import json, os, sys\nimport neighbour\n"
        "print(json.dumps([__name__, sys.argv[1:], os.environ['TF_CONFIG'], neighbour.X, "
        "os.environ['ALLABOARD_PID'] == str(os.getpid())]))\n"
    )
    (tmp_path / "neighbour.py").write_text("X = 5\n")
    (tmp_path / "first").mkdir()
    (tmp_path / "first/tensorflow.py").write_text("raise SystemExit('not the installed one')\n")
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    words = [str(script)] if way == "script" else ["-m", "task"]
    process = subprocess.Popen(
        [sys.executable, standby.__file__, str(fifo), str(script) if way == "script" else ""],
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "first")},
    )
    told = {"worker": 2, "words": [*words, "--a", "b"], "environment": {"TF_CONFIG": "{}"}}
    fifo.write_text(json.dumps(told))
    out, _ = process.communicate(timeout=60)
    assert json.loads(out) == ["__main__", ["--a", "b"], "{}", 5, True]
    assert process.returncode == 0
