"""The journal of a run as a feed: whole, torn, of another version."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_fakes import make_finding
from allaboard.agent.journal import Journal
from allaboard.facts import Exit, RunPhase
from allaboard.facts.samples import sample_job, sample_member
from allaboard.feed.journal_replay import JournalReplay, mark_abandoned, replay_journal
from allaboard.feed.messages import Course, FeedError, FindingMessage, Hello, Note, SnapshotMessage


def write_run(folder: Path) -> Journal:
    journal = Journal(folder)
    journal.write_start("2026-11-25T12:00:00Z", "j", ("python", "train.py"), 2, False)
    journal.write_event("2026-11-25T12:00:01Z", "all 2 ready")
    journal.write_finding(make_finding("worker 1 is stopped"))
    journal.write_view("2026-11-25T12:00:02Z", sample_job(sample_member(0), sample_member(1)))
    done = sample_member(0, exit=Exit(ended_at=99.0, code=0))
    journal.write_view("2026-11-25T12:00:09Z", sample_job(done, ended=True))
    return journal


def test_a_run_is_replayed_in_order(tmp_path: Path) -> None:
    write_run(tmp_path).close()
    messages = list(replay_journal(tmp_path))
    kinds = [type(m) for m in messages]
    assert kinds == [
        Hello,
        Note,
        FindingMessage,
        SnapshotMessage,
        SnapshotMessage,
        Course,
        SnapshotMessage,
    ]
    first, last = messages[3], messages[-1]
    assert isinstance(first, SnapshotMessage) and isinstance(last, SnapshotMessage)
    assert len(first.snapshot.ranks) == 2
    assert first.snapshot.findings[0].summary == "worker 1 is stopped"
    assert (last.snapshot.run.phase, last.snapshot.ranks[0].end) == (RunPhase.ENDED, "exit code 0")
    assert last.snapshot.run.command == ("python", "train.py")


def test_a_line_that_is_being_written_waits_for_its_end(tmp_path: Path) -> None:
    journal = write_run(tmp_path)
    path = tmp_path / "journal.jsonl"
    with path.open("ab") as file:
        file.write(b'{"kind":"event","at":"t","te')
    replay = JournalReplay(tmp_path)
    assert len(list(replay.take_in(all_snapshots=False))) == 4
    assert list(replay.take_in()) == []
    with path.open("ab") as file:
        file.write(b'xt":"later"}\n')
    assert list(replay.take_in()) == [Note(noted_at="t", text="later")]
    journal.close()


def test_a_run_without_report_is_abandoned_only_if_said_so(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.write_start("2026-11-25T12:00:00Z", "j", ("python", "train.py"), 1, False)
    journal.write_view("2026-11-25T12:00:02Z", sample_job(sample_member(0)))
    journal.close()
    replay = JournalReplay(tmp_path)
    list(replay.take_in())
    snapshot = replay.final_snapshot()
    assert not replay.has_report
    assert snapshot.run.outcome == ""
    assert replay.agent[1] > 0
    assert mark_abandoned(snapshot, "its agent is gone").run.phase is RunPhase.ENDED


def test_a_folder_of_another_version_says_which(tmp_path: Path) -> None:
    start = {"kind": "start", "allaboard": "0.0.7", "job": "j"}
    view = {"kind": "view", "at": "t", "view": {"members": "none of ours"}}
    (tmp_path / "journal.jsonl").write_text(f"{json.dumps(start)}\n{json.dumps(view)}\n")
    with pytest.raises(
        FeedError, match=r"written by allaboard 0\.0\.7, which allaboard .* cannot read"
    ):
        list(replay_journal(tmp_path))


def test_a_folder_without_journal_says_what_to_name(tmp_path: Path) -> None:
    with pytest.raises(FeedError, match=r"no journal of a run .*name a run folder"):
        list(replay_journal(tmp_path))


def test_lines_of_garbage_are_skipped(tmp_path: Path) -> None:
    write_run(tmp_path).close()
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b"\xff\n[1]\n{}\n" + path.read_bytes())
    (tmp_path / "report.json").write_text("{")
    assert len(list(replay_journal(tmp_path))) == 7
