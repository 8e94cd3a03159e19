"""A link that is lost in mid-job and comes back: what was told of it is told to be over on every host."""

from __future__ import annotations

from pathlib import Path

import pytest

from bedded import need
from hosted import Hosted
from testbed import Bed
from testbed.firewall import Block

JOB = (str(Path(__file__).parents[2] / "src/allaboard/drills/jobs/torch_ddp.py"), "--steps", "9000")


@pytest.mark.zoo
@pytest.mark.timeout(200)
def test_the_loss_is_told_and_then_its_end() -> None:
    need()
    with Bed(3, lifetime=180) as bed:
        job = Hosted(bed, "torch", JOB, ("--timeout", "30"))
        job.wait_for_steps(30)
        bed.block("h1", Block(way="both", peer="h2"))
        for host in range(3):
            job.wait_for("NET012 data-not-answered: ", host)
        bed.unblock("h1")
        for host in range(3):
            job.wait_for("resolved NET012 data-not-answered[:,] ", host)
        assert job.processes[0].poll() is None
