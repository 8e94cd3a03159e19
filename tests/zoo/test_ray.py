"""A real Ray of two nodes: the ranks of Ray Train are watched by their environment, and found by `--ray`."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from installed_python import make_installed_python
from reported import ALLABOARD, wait_until

pytest.importorskip("ray.cluster_utils", reason="ray is not installed: pip install 'ray[train]'")
pytestmark = [pytest.mark.zoo, pytest.mark.long, pytest.mark.timeout(900)]
JOB = Path(__file__).parent / "jobs" / "ray_train.py"
ASLEEP = "worker 1 is asleep at ray_train.py:"


def test_the_rank_of_ray_train_that_sleeps_is_named_live_and_by_diagnose(tmp_path: Path) -> None:
    output = tmp_path / "output"
    with output.open("w") as stream:
        job = subprocess.Popen(
            [make_installed_python(tmp_path / "env"), str(JOB), str(tmp_path)],
            env={**os.environ, "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"},
            stdout=stream, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        wait_until(lambda: "HANG005" in output.read_text() or job.poll() is not None, 500.0)
        said = output.read_text()
        assert "nodes 2" in said and "all 2 ready" in said, said[-3000:]
        assert ASLEEP in said, said[-3000:]
        runs = [p for p in (tmp_path / "runs").iterdir() if (p / "journal.jsonl").exists()]
        assert len(runs) == 1  # one folder knows of all ranks
        examined = subprocess.run(
            [*ALLABOARD, "diagnose", "--ray"],
            capture_output=True, text=True, timeout=200, check=False,
        )  # fmt: skip
        ranks = [line for line in examined.stdout.splitlines() if line.startswith("worker ")]
        assert len(ranks) == 2, examined.stdout + examined.stderr
        assert "in a collective at ray_train.py" in ranks[0], examined.stdout
        assert "asleep at ray_train.py" in ranks[1], examined.stdout
    finally:
        job.send_signal(signal.SIGTERM)  # its own end takes Ray's processes with it
        try:
            job.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
