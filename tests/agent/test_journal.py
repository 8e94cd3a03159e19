"""The journal of a run, on a real disk."""

from __future__ import annotations

import json
from pathlib import Path

from allaboard.agent.journal import Journal


def test_a_signal_that_comes_once_it_is_closed_is_no_error(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.write_event("now", "all 2 ready")
    journal.close()
    journal.write_event("later", "SIGTERM: ending")
    journal.close()
    told = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    assert [entry["text"] for entry in told] == ["all 2 ready"]
    assert not journal.write_error
