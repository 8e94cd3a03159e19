"""Ranks that waited for one whose GPU failed are no second finding; ranks that waited for another are."""

from __future__ import annotations

from pathlib import Path

from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.facts import Severity
from allaboard.rules.engine.catalogue import load_catalogue

ASSERTION = """\
[rank3]: Traceback (most recent call last):
[rank3]:   File "/w/train.py", line 90, in <module>
[rank3]:     loss.backward()
[rank3]: RuntimeError: CUDA error: device-side assert triggered
"""
WAIT = (
    "[rank{0}]:[E1002 10:01:00.0 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=311, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for "
    "600010 milliseconds before timing out.\n"
)


def errors_of(folder: Path, text: str) -> list[str]:
    """Return the rules of the errors that the log tells."""
    file = folder / "job.log"
    file.write_text(text)
    findings = diagnose_paths([file], load_catalogue()).findings
    return [f.rule for f in findings if f.severity is Severity.ERROR]


def test_a_wait_for_the_rank_whose_gpu_failed_is_no_second_finding(tmp_path: Path) -> None:
    assert errors_of(tmp_path, ASSERTION + WAIT.format(0)) == ["LOG006"]


def test_a_wait_of_that_rank_itself_is_reported(tmp_path: Path) -> None:
    assert "LOG001" in errors_of(tmp_path, WAIT.format(3) + WAIT.format(0))
