"""The announcer with a fake terminal and a journal on disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_fakes import Workbench, make_finding, untimed
from allaboard.agent.background_check import MAX_SHOWN_NOTES


def test_what_is_not_printed_is_in_the_journal(tmp_path: Path) -> None:
    with Workbench(tmp_path) as bench:
        terminal, announcer = bench.terminal, bench.announcer
        announcer.write_line("printed")
        announcer.write_line("not printed", to_terminal=False)
    assert untimed(terminal.lines) == ["printed"]
    assert announcer.notes == ["printed", "not printed"]
    lines = (tmp_path / "journal.jsonl").read_text().splitlines()
    assert [json.loads(line)["text"] for line in lines] == announcer.notes


def test_a_note_is_broken_between_words_on_a_terminal_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    note = "all 4 ready after 2.7 s (init_process_group, tcp://127.0.0.1:32110)"
    with Workbench(tmp_path) as bench:
        bench.announcer.write_line(note)
        bench.terminal.is_tty = True
        bench.announcer.write_line(note)
        in_file, *on_terminal = bench.terminal.lines
    assert in_file.endswith(f": {note}")
    assert on_terminal[1:] == ["    2.7 s (init_process_group,", "    tcp://127.0.0.1:32110)"]
    assert bench.announcer.notes == [note, note]


def test_of_many_notes_on_the_script_the_first_are_printed(tmp_path: Path) -> None:
    findings = [make_finding(f"finding {n}") for n in range(MAX_SHOWN_NOTES + 2)]
    with Workbench(tmp_path) as bench:
        terminal, announcer = bench.terminal, bench.announcer
        announcer.announce_script_findings(1.0, findings)
    assert untimed(terminal.lines[-1:]) == ["2 more notes on the script: allaboard check train.py"]
    shown = [n for n in range(len(findings)) if any(f"finding {n}" in t for t in terminal.lines)]
    assert shown == list(range(MAX_SHOWN_NOTES))
    assert len(announcer.script_findings) == len(findings)
