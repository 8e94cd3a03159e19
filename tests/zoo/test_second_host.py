"""The values of TensorFlow 1's servers outlive the host of the chief: another host keeps them too, and leaves
them as a checkpoint."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bedded import need
from hosted import Hosted
from testbed import Bed

JOB = Path(__file__).parent / "jobs/ps_values.py"
READ = """
import sys, tensorflow as tf
newest = tf.train.latest_checkpoint(sys.argv[1])
found = tf.train.load_checkpoint(newest)
print(*(int(found.get_tensor(name).min()) for name in ("global_step", "ref", "handle", "count", "parts")))
"""


def read(folder: Path) -> list[int]:
    """The step of the checkpoint in this folder, and the least of each variable, which count the steps."""
    command = [sys.executable, "-c", READ, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return [int(word) for word in done.stdout.split()]


@pytest.mark.long
@pytest.mark.zoo
@pytest.mark.timeout(300)
def test_the_values_outlive_the_host_of_the_chief(tmp_path: Path) -> None:
    need()
    stop = tmp_path / "stop"
    with Bed(3, lifetime=280) as bed:
        options = ("--on-failure", "restart", "--ps-snapshot", "0.5")
        words = (str(JOB), "--until", str(stop))
        job = Hosted(bed, "tensorflow", words, options, roles=("worker", "worker", "ps"))
        job.wait_for("a snapshot of 10 variables, .* is kept in memory")
        job.wait_for("a snapshot of 10 variables, .* is kept here too", host=1)
        before = len(re.findall(r"step (\d+) values", job.text(0)))
        job.wait_for(r"step (\d+) values", count=before + 100)
        job.lose_agent(0)
        job.wait_for("has gone; from now on nothing is restarted", host=1)
        steps = [int(step) for step in re.findall(r"step (\d+) values", job.text(0))]
        stop.touch()
        ((_, report),) = job.end([1])
        said = re.search(r"values after step (\d+) are left in (\S+);", job.text(1))
        assert said is not None, (job.text(1)[-3000:], report)
        step, *values = read(Path(said[2]))
        assert step == int(said[1]) >= steps[0] + 100
        assert all(abs(value - step) < 40 for value in values)
        job.end([2])
        assert "are left in" not in job.text(2)
