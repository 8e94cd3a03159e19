"""The process that `allaboard run --tensorboard` and `--tracker` start beside the job."""

from __future__ import annotations

import asyncio
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

from allaboard.faces.experiments.mlflow_run import MlflowTracker
from allaboard.faces.experiments.run_trackers import RunTrackers
from allaboard.faces.experiments.script_run import ScriptRunTracker
from allaboard.faces.experiments.tensorboard_events import TensorBoardTracker
from allaboard.faces.experiments.tracker import Tracker
from allaboard.faces.experiments.tracker_settings import AUTO, TrackerSettings
from allaboard.faces.experiments.trackio_run import TrackioTracker
from allaboard.faces.experiments.wandb_run import WandbTracker
from allaboard.faces.sidecar.lasting_source import follow_folder
from allaboard.faces.sidecar.problem_notes import STDOUT, ProblemNotes, write_to_agent
from allaboard.faces.sidecar.sidecar_run import await_journal, read_settings, yield_to_training

STDERR = 2
SCRIPT_TRACKERS: dict[str, type[ScriptRunTracker]] = {
    "wandb": WandbTracker,
    "mlflow": MlflowTracker,
    "trackio": TrackioTracker,
}
"""Trackers that are written to if the script uses them, by the name that `--tracker` has for them."""


def _make_trackers(settings: TrackerSettings) -> list[Tracker]:
    trackers: list[Tracker] = []
    if settings.tensorboard:
        trackers.append(TensorBoardTracker(settings.tensorboard))
    is_auto = AUTO in settings.trackers
    names = SCRIPT_TRACKERS if is_auto else settings.trackers
    return [*trackers, *(SCRIPT_TRACKERS[name](is_optional=is_auto) for name in names)]


def _keep_pipe() -> int:
    """Return the pipe to the agent. What packages print goes to the log instead, and their processes do not
    inherit the pipe."""
    pipe = os.dup(STDOUT)
    os.dup2(STDERR, STDOUT)
    return pipe


def _forbid_torch() -> None:
    """Make ``import torch`` fail here. tensorboardX imports it, where it is installed, to know a tensor when
    it sees one; that takes seconds and hundreds of MB, and no tensor comes here."""
    modules: dict[str, Any] = sys.modules
    modules["torch"] = None


async def _write(settings: TrackerSettings, pipe: int) -> None:
    run_dir = Path(settings.run_dir)
    await await_journal(run_dir)
    notes = ProblemNotes(partial(write_to_agent, pipe=pipe))
    source = follow_folder(run_dir, "scalars and findings", notes)
    await RunTrackers(source, _make_trackers(settings), notes).run()


if __name__ == "__main__":
    yield_to_training()
    _forbid_torch()
    asyncio.run(_write(read_settings(TrackerSettings), _keep_pipe()))
    os._exit(0)  # a tracker that hangs must not hold the end of the run
