"""Copies the servers' newest values to a checkpoint on disk when a job did not complete."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import NamedTuple

NEWEST_SNAPSHOT_FILE = "snapshot.json"
"""File in which `serving.ps_snapshotter` names its newest snapshot."""
CHECKPOINT_STATE_FILE = "checkpoint"
"""File by which TensorFlow finds the newest checkpoint of a folder: tf.train.CheckpointState as text."""
MAX_COPY_ATTEMPTS = 3
"""Attempts to copy: a newer snapshot may replace the one that is being copied."""


class ExportedSnapshot(NamedTuple):
    """A checkpoint on disk."""

    folder: Path
    """Folder for the argument `checkpoint_dir` of MonitoredTrainingSession."""
    step: int
    """Global step of the values."""


def export_snapshot(memory_folder: Path, folder: Path) -> ExportedSnapshot | None:
    """Copy the newest snapshot in ``memory_folder`` to ``folder``; return None if there is no snapshot.

    ``folder`` appears complete or not at all. Raises OSError if the disk has no room for it.
    """
    for attempt in range(MAX_COPY_ATTEMPTS):
        try:
            newest = json.loads((memory_folder / NEWEST_SNAPSHOT_FILE).read_text())
        except FileNotFoundError:
            return None
        try:
            return _copy_checkpoint(Path(newest["prefix"]), int(newest["step"]), folder)
        # The snapshotter has replaced this snapshot by a newer one meanwhile: read its name again.
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
        # rename(2) makes the complete folder appear at once; a reader never sees half a checkpoint.
        new.rename(folder)
    except OSError:
        shutil.rmtree(new, ignore_errors=True)
        raise
    return ExportedSnapshot(folder, step)
