"""The pages of docs/launchers and docs/it-hangs-now.md, as far as one host can follow them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from allaboard.hosts import proc
from shell_pages import Typed, commands_of, files_of, type_command

DOCS = Path(__file__).parents[2] / "docs"
SCRIPT = files_of(DOCS / "tutorials" / "pytorch.md")["train.py"]
START_LIMIT_S = 60.0


@pytest.mark.zoo
def test_torchrun_below_allaboard(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    typed = commands_of(DOCS / "launchers" / "torchrun.md")[0]
    assert typed.command.startswith("allaboard run -- torchrun")
    printed = type_command(typed, tmp_path)
    assert "all 3 ready" in printed, printed
    assert "trained 400 steps" in printed and "completed after" in printed, printed


@pytest.mark.zoo
def test_a_job_of_torchrun_that_hangs_is_asked(tmp_path: Path) -> None:
    mark = tmp_path / "asleep"
    script = SCRIPT.replace("time.sleep(3600)", f"open({str(mark)!r}, 'w'), time.sleep(3600)")
    (tmp_path / "train.py").write_text(script)
    words = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "3"]
    job = subprocess.Popen(
        [*words, "--standalone", "train.py", "--break"],
        cwd=tmp_path, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    try:
        until = time.monotonic() + START_LIMIT_S
        while not mark.exists():
            assert job.poll() is None and time.monotonic() < until
            time.sleep(0.2)
        time.sleep(2)  # until the others have reached the collective in which they wait
        printed = type_command(Typed(f"allaboard diagnose {job.pid}", ""), tmp_path)
    finally:
        # Not its process group: torchrun starts each rank in a session of its own.
        for pid in (*proc.descendants_of(job.pid), job.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        job.wait()
    assert "HANG005" in printed and "rank 1" in printed and "train.py:15" in printed, printed
