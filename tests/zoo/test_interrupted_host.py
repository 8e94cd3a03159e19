"""One host of a job is asked for the end, by Ctrl-C or a batch system: what the others say and do."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from bedded import need
from hosted import Hosted
from testbed import Bed

JOB = (str(Path(__file__).parents[2] / "src/allaboard/drills/jobs/torch_ddp.py"), "--steps", "9000")
LONG = pytest.mark.long
ONCE = ("--timeout", "30")
RESTART = ("--on-failure", "restart")


@pytest.mark.zoo
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("host", "number", "options"),
    [
        (1, signal.SIGTERM, ONCE),
        (0, signal.SIGINT, ONCE),
        (1, signal.SIGINT, RESTART),
        pytest.param(0, signal.SIGTERM, RESTART, marks=LONG),
    ],
)
def test_the_others_say_who_was_interrupted_and_blame_nobody(
    host: int, number: signal.Signals, options: tuple[str, ...]
) -> None:
    need()
    with Bed(3, lifetime=280) as bed:
        job = Hosted(bed, "torch", JOB, options)
        job.wait_for_steps(30)
        job.interrupt(host, number)
        said = f"h{host} was interrupted by {number.name}, and worker {host} with it"
        for index, (code, report) in enumerate(job.end()):
            text = job.text(index)
            assert (code, report["outcome"], report["restarts"]) == (
                128 + number,
                "interrupted",
                0,
            ), text
            assert report["findings"] == [], text
            assert report["reason"] == ("interrupted" if index == host else said)
            assert (said in text) is (index != host)


@pytest.mark.zoo
@pytest.mark.timeout(300)
@pytest.mark.parametrize("options", [ONCE, pytest.param(RESTART, marks=LONG)])
def test_a_batch_system_that_ends_all_hosts_blames_nobody(options: tuple[str, ...]) -> None:
    need()
    with Bed(3, lifetime=280) as bed:
        job = Hosted(bed, "torch", JOB, options)
        job.wait_for_steps(30)
        for host in (2, 0, 1):
            job.interrupt(host, signal.SIGTERM)
        for index, (code, report) in enumerate(job.end()):
            found = code, report["outcome"], report["restarts"], report["findings"]
            assert found == (143, "interrupted", 0, []), job.text(index)
