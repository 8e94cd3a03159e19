"""`allaboard run` of a script that does not look how the processes ended that it had started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from installed_frameworks import needs_torch

pytestmark = needs_torch
SCRIPT = """import torch.multiprocessing as mp
def actor(name):
    {"cartpole": 1}[name]
if __name__ == "__main__":
    context = mp.get_context("spawn")
    actors = [context.Process(target=actor, args=(name,)) for name in ("cartpole", "NAME")]
    for a in actors: a.start()
    for a in actors: a.join()
    LAST
"""


@pytest.mark.parametrize(
    ("name", "last", "rules"),
    [
        ("pong", "", ["EXIT014"]),
        ("cartpole", "", []),
        ("pong", "print('failed:', [a.name for a in actors if a.exitcode])", []),
    ],
)
def test_a_process_that_failed_is_reported_though_its_script_exits_with_0(
    tmp_path: Path, name: str, last: str, rules: list[str]
) -> None:
    script = tmp_path / "actors.py"
    script.write_text(SCRIPT.replace("NAME", name).replace("LAST", last))
    run_dir = tmp_path / "run"
    done = subprocess.run(
        [sys.executable, "-m", "allaboard", "run", "--run-dir", str(run_dir), "--",
         sys.executable, str(script)],
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads((run_dir / "report.json").read_text())
    assert [f["rule"] for f in report["findings"]] == rules
