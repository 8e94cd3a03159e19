"""A crash that faulthandler and torchrun both report, and one that they do not share."""

from __future__ import annotations

import signal

from allaboard.analysis.failures.signal_advice import crash_place
from allaboard.diagnosis.logs.traceback_attribution import join_reported_crashes
from allaboard.facts import Exit, Glimpse, Heard, Place, Speaker

LAST_LINE = "Fatal Python error: Segmentation fault, aug.py:88 in decode"


def reported(signal_name: str = "SIGSEGV") -> Heard:
    """Return torchrun's line on a child."""
    return Heard(
        rule="EXIT001",
        says=f"the process of local rank 2 (pid 4212) was killed by {signal_name}",
        speakers=(Speaker(-1, "failed (exitcode: -11)", Place(file="a.log", line=9)),),
        fix="",
    )


def crashed(rank: int = -1, file: str = "a.log") -> Glimpse:
    """Return what faulthandler wrote."""
    end = Exit(ended_at=0.0, signal=int(signal.SIGSEGV), last_line=LAST_LINE)
    return Glimpse(origin=Place(file=file, line=2), rank=rank, exit=end)


def test_one_crash_is_told_once_with_its_line() -> None:
    (heard,), left = join_reported_crashes([reported()], [crashed()])
    assert heard.says.endswith("was killed by SIGSEGV, at aug.py:88 in decode")
    assert "aug.py:88" in heard.fix and left == []


def test_a_rank_or_a_file_or_a_signal_of_its_own_is_another_crash() -> None:
    for heard, glimpse in (
        (reported(), crashed(rank=1)),
        (reported(), crashed(file="b.log")),
        (reported("SIGBUS"), crashed()),
    ):
        assert join_reported_crashes([heard], [glimpse]) == ([heard], [glimpse])


def test_two_crashes_of_one_signal_are_left_as_they_are() -> None:
    two = [crashed(), crashed()]
    assert join_reported_crashes([reported()], two) == ([reported()], two)


def test_a_last_line_of_another_kind_has_no_place() -> None:
    assert crash_place(LAST_LINE) == "aug.py:88 in decode"
    assert crash_place("Fatal Python error: Aborted") == ""
    assert crash_place("step 7, aug.py:88 in decode") == ""
