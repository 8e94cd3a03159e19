"""More variables than fit into one message come back to a server of another host, whole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bedded import need
from hosted import Hosted
from testbed import Bed

JOB = Path(__file__).parent / "jobs/ps_large.py"
VALUES = r"step (\d+) values ([0-9 ]+)"
OPTIONS = ("--on-failure", "restart", "--ps-snapshot", "2", "--ps-standby", "on")


@pytest.mark.long
@pytest.mark.zoo
@pytest.mark.timeout(400)
def test_a_gigabyte_and_a_half_is_given_back(tmp_path: Path) -> None:
    need()
    stop = tmp_path / "stop"
    words = (str(JOB), "--count", "5", "--megabytes", "300", "--until", str(stop))
    with Bed(2, lifetime=380) as bed:
        job = Hosted(bed, "tensorflow", words, OPTIONS, roles=("worker", "ps"))
        job.wait_for(r"a snapshot of 6 variables, 1.6 GB, is kept")
        before = len(re.findall(VALUES, job.text(0)))
        job.hurt(1)
        job.wait_for("ps 0 is back")
        job.wait_for(VALUES, count=before + 30)
        stop.touch()
        for code, report in job.end():
            assert (code, report["outcome"], report["restarts"]) == (0, "completed", 0)
            (back,) = report["returns"]
            assert back["snapshot_age_s"] is not None and back["lost_steps"] is not None
        found = re.findall(VALUES, job.text(0))
        first = int(found[before][0])
        assert first > 1
        # Each was read at a moment of its own, while the training went on; none begins anew.
        assert all(first - 1 <= int(value) for value in found[before][1].split())
