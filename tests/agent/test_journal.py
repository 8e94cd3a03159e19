"""The journal of a run, on a real disk."""

from __future__ import annotations

import json
from pathlib import Path

from allaboard.agent.journal import Journal
from allaboard.facts import Outcome, Report


def test_a_signal_that_comes_once_it_is_closed_is_no_error(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.write_event("now", "all 2 ready")
    journal.close()
    journal.write_event("later", "SIGTERM: ending")
    journal.close()
    told = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    assert [entry["text"] for entry in told] == ["all 2 ready"]
    assert not journal.write_error


def test_a_copy_that_is_not_written_is_no_fault_of_the_run_folder(tmp_path: Path) -> None:
    report = Report(
        allaboard="0", job="j", command=(), outcome=Outcome.COMPLETED, reason="", exit_code=0,
        started="", seconds=1.0, run_dir="", workers=(), findings=(),
    )  # fmt: skip
    journal = Journal(tmp_path)
    assert journal.write_report(report, Path("/dev/full")) == "no space left on device"
    assert journal.write_report(report, tmp_path / "copy.json") == ""
    assert not journal.write_error
    assert (tmp_path / "report.json").read_bytes() == (tmp_path / "copy.json").read_bytes()
    journal.close()
