"""Runs beside those of the script in the real wandb, MLflow and trackio, without a server: what is in them,
and that the script's own are as the script left them."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import os
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from allaboard.faces.experiments.mlflow_run import MlflowTracker
from allaboard.faces.experiments.run_trackers import RunTrackers
from allaboard.faces.experiments.scalar_table import unix_seconds
from allaboard.faces.experiments.script_run import ScriptRunTracker
from allaboard.faces.experiments.trackio_run import TrackioTracker
from allaboard.faces.experiments.wandb_run import WandbTracker
from allaboard.faces.sidecar.problem_notes import ProblemNotes
from allaboard.facts import Snapshot, TrackerRun
from allaboard.feed.messages import FindingMessage, SnapshotMessage
from allaboard.feed.tracker_runs import tracker_runs
from reported import refusing, wait_until
from watched import AT, PlayedSource, hanging_snapshot, healthy_snapshot, stopped_finding

# What these packages warn of is theirs.
pytestmark = pytest.mark.filterwarnings("ignore")
SCRIPT = """
import json, sys
from allaboard.probe.tracker_runs import open_runs
assert open_runs() == {}
%s
print(json.dumps(open_runs()))
%s
"""


def run_script(package: str, opening: str, ending: str, **variables: str) -> tuple[TrackerRun, ...]:
    """Run a script that logs; return the runs that the probe sees in it before it ends."""
    pytest.importorskip(package, reason=f"{package} is not installed", exc_type=ImportError)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT % (opening, ending)],
        env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True, check=True, timeout=250,
    )  # fmt: skip
    (notes,) = (line for line in done.stdout.splitlines() if line.startswith("{"))
    return tracker_runs(json.loads(notes))


def play(tracker: ScriptRunTracker, runs: tuple[TrackerRun, ...], folder: Path) -> list[str]:
    """A job of this script that is stopped for a moment, and completes; return what is said."""

    def at(snapshot: Snapshot, elapsed_s: float, outcome: str = "") -> SnapshotMessage:
        run = msgspec.structs.replace(
            snapshot.run,
            elapsed_s=elapsed_s,
            outcome=outcome,
            run_dir=str(folder),
            reason="all well",
        )
        first, *others = snapshot.ranks
        first = msgspec.structs.replace(first, trackers=runs)
        return SnapshotMessage(
            snapshot=msgspec.structs.replace(snapshot, run=run, ranks=(first, *others))
        )

    notes: list[str] = []

    async def run() -> None:
        source = PlayedSource()
        source.played = [
            at(healthy_snapshot(), 60.0),
            FindingMessage(finding=stopped_finding()),
            at(hanging_snapshot(), 80.0),
            at(healthy_snapshot(), 100.0, "completed"),
        ]
        end_timeout_s = 240.0
        await RunTrackers(
            source, [tracker], ProblemNotes(notes.append), end_timeout_s=end_timeout_s
        ).run()

    asyncio.run(run())
    return notes


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of its own, and the environment as it was."""
    monkeypatch.chdir(tmp_path)
    before = dict(os.environ)
    yield tmp_path
    os.environ.clear()
    os.environ.update(before)


def wandb_records(file: Path) -> list[Any]:
    """The records of an offline run: a header of 7 bytes, then LevelDB's log format with blocks of 32 KiB."""
    record_type = importlib.import_module("wandb.proto.wandb_internal_pb2").Record
    data, offset, whole, records = file.read_bytes(), 7, b"", []
    while offset + 7 <= len(data):
        if 32768 - offset % 32768 < 7:
            offset += 32768 - offset % 32768
            continue
        _, length, kind = struct.unpack_from("<IHB", data, offset)
        whole += data[offset + 7 : offset + 7 + length]
        offset += 7 + length
        if kind in (1, 4):  # a whole record, or the end of one
            records.append(record_type.FromString(whole))
            whole = b""
    return records


@pytest.mark.long
def test_wandb_has_a_run_in_the_project_and_group_of_the_scripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = run_script(
        "wandb",
        "import wandb; run = wandb.init(project='digits', group='night', name='exp'); run.log({'loss': 1})",
        "run.finish()",
        WANDB_MODE="offline",
    )
    (script_run,) = runs
    assert (script_run.project, script_run.group, script_run.name) == ("digits", "night", "exp")
    assert script_run.offline
    (own_file,) = (tmp_path / "wandb").glob("offline-run-*/run-*.wandb")
    before, link = own_file.read_bytes(), (tmp_path / "wandb/latest-run").readlink()
    monkeypatch.setenv("WANDB_RUN_ID", script_run.id)  # meant for the script
    folder = tmp_path / "run"
    folder.mkdir()
    (note,) = play(WandbTracker(), runs, folder)
    assert f"(--tracker): to upload them: wandb sync {folder}/wandb/offline-run-" in note
    assert own_file.read_bytes() == before
    assert (tmp_path / "wandb/latest-run").readlink() == link
    (file,) = (folder / "wandb").glob("offline-run-*/run-*.wandb")
    # Its own process closes the file, a moment later.
    wait_until(lambda: any(r.HasField("exit") for r in wandb_records(file)), within_s=60)
    records = wandb_records(file)
    run = next(r.run for r in records if r.HasField("run"))
    assert run.run_id != script_run.id and run.display_name == "exp allaboard"
    assert (run.project, run.run_group, run.job_type) == ("digits", "night", "allaboard")
    history = [
        {"/".join(i.nested_key) or i.key: json.loads(i.value_json) for i in r.history.item}
        for r in records
        if r.HasField("history")
    ]
    stalled = [row["allaboard/stalled"] for row in history if "allaboard/stalled" in row]
    assert stalled == [0, 1, 0] and {row["allaboard/step"] for row in history} == {400}
    assert [row["_timestamp"] for row in history if "allaboard/stalled" in row] == [
        unix_seconds(AT)
    ] * 3
    (table,) = (folder / "wandb").rglob("findings_table*.json")
    ((step, title, text),) = json.loads(table.read_text())["data"]
    assert (step, title) == (400, "HANG001 stopped (worker 1)") and "kill -CONT 101" in text
    summary = {
        "/".join(i.nested_key) or i.key: i.value_json for r in records for i in r.summary.update
    }
    assert summary["allaboard/outcome"] == '"completed"'


@pytest.mark.long
def test_mlflow_has_a_run_below_the_scripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    uri = f"file:{tmp_path}/mlruns"
    runs = run_script(
        "mlflow",
        f"import mlflow; mlflow.set_tracking_uri({uri!r}); mlflow.set_experiment('digits')\n"
        "mlflow.start_run(run_name='exp'); mlflow.log_metric('loss', 1, step=0)",
        "mlflow.end_run()",
    )
    (script_run,) = runs
    assert (script_run.name, script_run.uri) == ("exp", uri)
    client = importlib.import_module("mlflow").MlflowClient(tracking_uri=uri)
    before = client.get_run(script_run.id).to_dictionary()
    (note,) = play(MlflowTracker(), runs, tmp_path)
    assert "the run 'exp allaboard' below the script's" in note
    assert client.get_run(script_run.id).to_dictionary() == before
    experiment = client.get_experiment_by_name("digits").experiment_id
    (own,) = (r for r in client.search_runs([experiment]) if r.info.run_id != script_run.id)
    assert (own.info.run_name, own.info.status) == ("exp allaboard", "FINISHED")
    assert own.data.tags["mlflow.parentRunId"] == script_run.id
    assert "kill -CONT 101" in own.data.tags["mlflow.note.content"]
    history = client.get_metric_history(own.info.run_id, "allaboard/stalled")
    assert sorted((m.step, m.value) for m in history) == [(400, 0.0), (400, 0.0), (400, 1.0)]


@pytest.mark.long
def test_trackio_has_a_run_in_the_project_and_group_of_the_scripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "kept"))
    runs = run_script(
        "trackio",
        "import trackio; trackio.init(project='digits', group='night', name='exp', auto_log_gpu=False)\n"
        "trackio.log({'loss': 1})",
        "trackio.finish()",
    )
    (script_run,) = runs
    assert (script_run.project, script_run.group, script_run.name) == ("digits", "night", "exp")

    def rows(name: str) -> list[tuple[int, Any]]:
        query = "select step, metrics from metrics where run_name = ? order by id"
        with contextlib.closing(sqlite3.connect(tmp_path / "kept/digits.db")) as database:
            return database.execute(query, (name,)).fetchall()

    before = rows("exp")
    (note,) = play(TrackioTracker(), runs, tmp_path)
    assert "the run 'exp allaboard' in the project 'digits'" in note
    assert rows("exp") == before and len(before) == 1
    own = [(step, json.loads(metrics)) for step, metrics in rows("exp allaboard")]
    assert [row["allaboard/stalled"] for _, row in own if "allaboard/stalled" in row] == [0, 1, 0]
    assert {step for step, _ in own} == {400}
    texts = [
        row["allaboard/findings_text"]["_value"]
        for _, row in own
        if "allaboard/findings_text" in row
    ]
    assert len(texts) == 1 and "kill -CONT 101" in texts[0]


def test_a_tracker_that_is_not_installed_here_is_said_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    runs = (TrackerRun(tracker="wandb", id="a", project="p"),)
    (note,) = play(WandbTracker(), runs, tmp_path)
    assert (
        "(--tracker) are not written: the script uses wandb, which cannot be imported here" in note
    )
    assert note.endswith("pip install wandb; the job goes on")


@pytest.mark.long
def test_a_tracker_that_refuses_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mlflow", reason="mlflow is not installed", exc_type=ImportError)
    with refusing() as address:
        runs = (TrackerRun(tracker="mlflow", id="a", project="1", uri=f"http://{address}"),)
        (note,) = play(MlflowTracker(), runs, tmp_path)
    assert "for mlflow (--tracker) are not written: MlflowException: " in note
    assert note.endswith("; the job goes on")


@pytest.mark.long
def test_wandb_without_a_key_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="wandb is not installed", exc_type=ImportError)
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    runs = (TrackerRun(tracker="wandb", id="a", project="p"),)
    (note,) = play(WandbTracker(), runs, tmp_path)
    assert "for wandb (--tracker) are not written: " in note and "wandb login" in note


def test_a_script_that_uses_none_is_said_once(tmp_path: Path) -> None:
    (note,) = play(MlflowTracker(), (TrackerRun(tracker="wandb"),), tmp_path)
    assert "were not written: no rank was seen to have a run of mlflow at its first step" in note
    (note,) = play(MlflowTracker(is_optional=True), (), tmp_path)
    assert note.startswith(
        "scalars and findings were not written (--tracker auto): no rank was seen"
    )


def test_of_a_tracking_uri_the_probe_passes_on_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    from allaboard.faces.experiments import mlflow_run
    from allaboard.probe import tracker_runs as probe

    uri = "https://u:hunter2secret@host:5000/a@b"
    shown = probe._without_password(uri)
    assert shown == "https://host:5000/a@b"
    assert probe._without_password("sqlite:////tmp/a@b/mlflow.db") == "sqlite:////tmp/a@b/mlflow.db"
    script_run = TrackerRun(tracker="mlflow", uri=shown)
    assert mlflow_run._tracking_uri(script_run) == shown
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    assert mlflow_run._tracking_uri(script_run) == uri
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://u:hunter2secret@elsewhere/")
    assert mlflow_run._tracking_uri(script_run) == shown
