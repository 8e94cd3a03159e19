"""What is left of a job that did not come to its end: the servers' newest values, as a checkpoint on disk."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import NamedTuple

NEWEST_SNAPSHOT_FILE = "snapshot.json"
"""Where `serving.snapshots` tells its newest one."""
CHECKPOINT_STATE_FILE = "checkpoint"
"""The file by which TensorFlow finds the newest checkpoint of a folder; tf.train.CheckpointState as text."""
MAX_COPY_ATTEMPTS = 3
"""A snapshot may be replaced by a newer one while it is copied."""


class ExportedSnapshot(NamedTuple):
    """A folder that `checkpoint_dir` of MonitoredTrainingSession takes, and the global step in it."""

    folder: Path
    step: int


def export_snapshot(memory_folder: Path, folder: Path) -> ExportedSnapshot | None:
    """Copies the newest snapshot in ``memory`` to ``folder``, which is there whole or not at all; None where
    none was taken. Raises OSError where there is no room for it."""
    for attempt in range(MAX_COPY_ATTEMPTS):
        try:
            newest = json.loads((memory_folder / NEWEST_SNAPSHOT_FILE).read_text())
        except FileNotFoundError:
            return None
        try:
            return _copy_checkpoint(Path(newest["prefix"]), int(newest["step"]), folder)
        except FileNotFoundError:
            if attempt == MAX_COPY_ATTEMPTS - 1:
                raise
    return None


def _copy_checkpoint(prefix: Path, step: int, folder: Path) -> ExportedSnapshot:
    new = folder.with_name(folder.name + ".new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(mode=0o700, parents=True)
    name = f"model.ckpt-{step}"
    try:
        for suffix in ("index", "data-00000-of-00001"):
            shutil.copyfile(f"{prefix}.{suffix}", new / f"{name}.{suffix}")
        lines = (
            f'{key}: "{name}"\n' for key in ("model_checkpoint_path", "all_model_checkpoint_paths")
        )
        (new / CHECKPOINT_STATE_FILE).write_text("".join(lines))
        shutil.rmtree(folder, ignore_errors=True)
        new.rename(folder)
    except OSError:
        shutil.rmtree(new, ignore_errors=True)
        raise
    return ExportedSnapshot(folder, step)
