"""Real jobs in TensorBoard: scalars, the fault of a stopped worker, and what a script wrote itself."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from reported import ranks_of, running_job, wait_until
from tensorboard_reader import read_events, scalars_of, texts_of

pytestmark = pytest.mark.timeout(1500)
JOBS = Path(__file__).parent / "jobs"


def said(folder: Path) -> str:
    return (folder.parent / f"{folder.name}.err").read_text()


def test_a_stopped_worker_is_in_tensorboard_beside_the_scripts_own_scalars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboardX", reason="tensorboardX is not installed")
    monkeypatch.chdir(tmp_path)
    folder, logs = tmp_path / "run", tmp_path / "runs/exp/allaboard"
    with running_job(folder, "--tensorboard", "auto", job=JOBS / "torch_logged.py") as job:
        wait_until(lambda: [r["activity"] for r in ranks_of(folder)] == ["training"] * 2)
        wait_until(logs.exists)
        victim = ranks_of(folder)[1]["pid"]
        os.kill(victim, signal.SIGSTOP)
        try:
            wait_until(lambda: b"HANG001 stopped" in b"".join(map(Path.read_bytes, logs.iterdir())))
            # That it is stopped is certain at once; that the job stalls, only some seconds later.
            wait_until(
                lambda: 1.0 in [v for _, v in scalars_of(read_events(logs), "allaboard/stalled")]
            )
        finally:
            os.kill(victim, signal.SIGCONT)
        job.send_signal(signal.SIGTERM)
        job.wait(200)
    events = read_events(logs)
    # Rank 0 alone writes scalars: on a busy disk it is a straggler, and said to be one.
    assert any(f"kill -CONT {victim}" in text for text in texts_of(events, "allaboard/findings"))
    assert max(value for _, value in scalars_of(events, "allaboard/steps_per_s")) > 0
    assert scalars_of(events, "allaboard_spread/steps_highest")[-1][1] > 0
    assert read_events(logs.parent).Tags()["scalars"] == ["loss"]  # the script's own, as it was
    assert f"(--tensorboard): {logs}" in said(folder)
    assert (folder / "trackers.log").read_text() == ""


def test_where_nothing_can_be_written_the_job_trains_and_ends_as_ever(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with running_job(folder, "--tensorboard", "/proc/none", steps=100) as job:
        assert job.wait(800) == 0
    assert said(folder).count("are not written: ") == 1


@pytest.mark.long
@pytest.mark.parametrize("package", ["wandb", "mlflow", "trackio"])
def test_a_job_is_in_the_tracker_that_its_script_uses(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(package, reason=f"{package} is not installed", exc_type=ImportError)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRACKER", package)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file:{tmp_path}/mlruns")
    folder = tmp_path / "run"
    with running_job(folder, "--tracker", "auto", steps=300, job=JOBS / "torch_tracked.py") as job:
        assert job.wait(800) == 0
    assert f"scalars and findings for {package} (--tracker): " in said(folder)
    kept = [f for name in ("run/wandb", "trackio", "mlruns") for f in (tmp_path / name).rglob("*")]
    assert any(b"exp allaboard" in f.read_bytes() for f in kept if f.is_file())
