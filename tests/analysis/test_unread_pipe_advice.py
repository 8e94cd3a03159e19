"""What to do about a full pipe that nobody reads."""

from __future__ import annotations

import msgspec

from allaboard.analysis.stalls.awaited_end import awaited_end_advice
from allaboard.facts.samples import USER, sample_member, sample_stack


def advice(end: str) -> str:
    stack = msgspec.structs.replace(sample_stack(USER), awaited_end=end)
    return awaited_end_advice((sample_member(1, stack=stack),))


def test_the_reader_is_to_be_looked_at() -> None:
    assert advice("pid 4711 (tee) to read the full pipe of its standard output") == (
        "see why pid 4711 (tee) does not read: is it stopped, a pager, or at its own work? on a: "
        "ps -o pid,stat,args -p 4711"
    )


def test_a_reader_that_is_not_known_is_to_be_found() -> None:
    told = "see which process should read this pipe, and why it does not"
    assert advice("somebody to read the full named pipe /tmp/ckpt") == told
    assert advice("an answer from 10.0.0.5:443") == ""
