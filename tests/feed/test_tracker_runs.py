"""The runs of trackers that the probe notes: they fit a note or are left out, and reach the feed."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest

from allaboard.facts import TrackerRun
from allaboard.facts.samples import sample_job, sample_member
from allaboard.feed.rank_states import rank_states
from allaboard.feed.tracker_runs import tracker_runs
from allaboard.probe.text_records import MAX_WORD_LENGTH
from allaboard.probe.tracker_runs import NOTE_PREFIX, open_runs


def wandb_with(mode: str = "online", **settings: str) -> SimpleNamespace:
    """What the probe reads of wandb."""
    fields = dict.fromkeys(("run_id", "project", "entity", "run_group", "run_name"))
    settings_now = SimpleNamespace(**{**fields, **settings}, mode=mode)
    return SimpleNamespace(run=SimpleNamespace(_settings=settings_now))


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (wandb_with(run_id="a", project="p"), TrackerRun(tracker="wandb", id="a", project="p")),
        (wandb_with("dryrun", project="p"), TrackerRun(tracker="wandb", project="p", offline=True)),
        (
            wandb_with(project="p", run_group="g", run_name="n" * 190),
            TrackerRun(tracker="wandb", project="p", group="g"),
        ),
        (wandb_with(project="p" * 300), None),  # half a name would be another project
        (wandb_with("disabled", project="p"), None),
        (SimpleNamespace(run=None), None),
        (SimpleNamespace(), None),  # a version that keeps it elsewhere
    ],
)
def test_a_run_of_wandb_is_read(
    module: SimpleNamespace, expected: TrackerRun | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", module)
    notes = open_runs()
    assert all(len(text) <= MAX_WORD_LENGTH for text in notes.values())
    assert tracker_runs(notes) == (() if expected is None else (expected,))


def test_a_note_that_was_cut_is_no_run() -> None:
    text = json.dumps({"project": "p", "id": "a"})
    notes = {f"{NOTE_PREFIX}wandb": text[:-4], f"{NOTE_PREFIX}mlflow": text, "torch": "2.13"}
    assert [run.tracker for run in tracker_runs(notes)] == ["mlflow"]
    for garbled in ("[]", "1", "{}]", '{"project": 1}'):
        assert tracker_runs({f"{NOTE_PREFIX}wandb": garbled}) == ()


def test_the_feed_has_the_runs_of_each_rank() -> None:
    note = {f"{NOTE_PREFIX}wandb": '{"id": "a"}'}
    view = sample_job(sample_member(0, notes=note), sample_member(1))
    assert [state.trackers for state in rank_states(view)] == [
        (TrackerRun(tracker="wandb", id="a"),),
        (),
    ]
