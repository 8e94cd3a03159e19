"""The part of a message that says why, and advice on messages about how a job was started."""

from __future__ import annotations

import pytest

from allaboard.analysis.log_ends.start_advice import start_advice
from allaboard.analysis.log_ends.telling_line import telling_part, with_telling_part


@pytest.mark.parametrize(
    ("message", "part"),
    [
        ("check failed in: ring.cc:7\nLast error:\ncard 7 is held", "card 7 is held"),
        (
            "call 6 failed.\nAB01: it took too long. Reason: rank 3 did not send",
            "rank 3 did not send",
        ),
        (
            '{"created":"@1","description":"no address","children":[{"os_error":"Address in use"}]}',
            "no address; Address in use",
        ),
        ("the ring is broken", ""),
    ],
)
def test_the_reason_that_a_message_quotes_is_found(message: str, part: str) -> None:
    assert telling_part(message) == part


def test_a_reason_in_the_first_line_is_not_repeated() -> None:
    assert with_telling_part("Caused by: no such ring") == "Caused by: no such ring"
    assert with_telling_part("call 6 failed\nCaused by: no ring") == "call 6 failed ... no ring"


@pytest.mark.parametrize(
    ("message", "advice"),
    [
        ("world_size (6) is not divisible by 4", "--nproc-per-node"),
        ("expected local-rank to be the same as rank % device-count.", "--nproc-per-node"),
        ("number of executors must be at least number of nodes", "--nproc-per-node"),
        ('If "cluster" is not set in ACME_CONFIG, the type must be WORKER', "echo $ACME_CONFIG"),
        ("disagreement between rank0 and rank1: [292], [0, 1]", "compare what every rank passes"),
        ("The paging file is too small for this operation", "num_workers"),
    ],
)
def test_a_message_on_the_start_leads_outside_the_program(message: str, advice: str) -> None:
    assert advice in start_advice(message)


@pytest.mark.parametrize(
    "message",
    [
        "list index out of range",
        "'NoneType' object has no attribute 'shape'",
        "mat1 and mat2 shapes cannot be multiplied (8x4 and 5x2)",
        "rank of the matrix must be 2",
        "MAX_LEN exceeded: 513 tokens",
    ],
)
def test_a_message_on_the_program_itself_leads_to_its_line(message: str) -> None:
    assert start_advice(message) == ""
