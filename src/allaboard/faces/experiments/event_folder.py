"""Finds the folder in which a rank of this host writes its own event files for TensorBoard, from outside.

The files are named ``events.out.tfevents.TIME.HOST.PID.…`` (by tensorboard's EventFileWriter, which PyTorch
and Lightning use, and by TensorFlow) or ``events.out.tfevents.TIME.HOST`` (by tensorboardX). A file counts
only if it is a rank's: the rank has it open, or it was made in this run and its name has the rank's pid. In
containers, the same pids come again in each run.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from allaboard.faces.experiments.scalar_table import unix_seconds
from allaboard.facts import Snapshot
from allaboard.hosts.proc import command_line

EVENT_FILE = re.compile(r"events\.out\.tfevents\.(?P<time>\d+)\.(?P<rest>.+)")
MAX_DEPTH = 5
"""Folders below a start of the search that are looked into."""
MAX_ENTRIES = 20_000
"""Files and folders that one search looks at: a data set may lie beside the script."""
MAX_RANKS = 8
"""Ranks that are looked at: those that log are the first ones."""
SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages", "wandb", "mlruns"})
DATA_FOLDERS = frozenset({"train", "validation", "val", "eval", "test"})
"""Folders that Keras and others make side by side in the run's own folder."""


def find_event_folder(snapshot: Snapshot) -> Path | None:
    """Return the folder in which a rank began to log first; None if none does, or it cannot be seen."""
    host = os.uname().nodename
    local = [r for r in snapshot.ranks if r.host in ("", host) and r.pid > 0 and not r.end]
    pids = [state.pid for state in local[:MAX_RANKS]]
    started_s = int(unix_seconds(snapshot.run.started))
    files = [file for pid in pids for file in open_event_files(pid)]
    files = files or named_event_files(pids, started_s)
    if not files:
        return None
    folder = min(files, key=_file_time).parent
    return folder.parent if folder.name in DATA_FOLDERS else folder


def open_event_files(pid: int) -> list[Path]:
    """Return the event files that a process has open."""
    files = []
    try:
        descriptors = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return []
    for descriptor in descriptors:
        try:
            target = descriptor.readlink()
        except OSError:
            continue
        if EVENT_FILE.fullmatch(target.name) and target.is_file():
            files.append(target)
    return files


def named_event_files(pids: Sequence[int], made_after_s: int) -> list[Path]:
    """Return the event files with one of the pids in their name that were made after a time (s since 1970).

    They are looked for in the processes' working directories and in folders that their commands name. Most
    writers open a file for a moment only, so that it is rarely found open."""
    starts = dict.fromkeys(start for pid in pids for start in _search_starts(pid))
    names = set(map(str, pids))
    return [
        path
        for start in starts
        for path in _files_below(start)
        if (match := EVENT_FILE.fullmatch(path.name)) is not None
        and not names.isdisjoint(match["rest"].split("."))
        and int(match["time"]) >= made_after_s
    ]


def _search_starts(pid: int) -> Iterator[Path]:
    """Yield the working directory, and the folders that the command names: ``--logdir DIR``,
    ``logger.dir=DIR``."""
    try:
        working_directory = Path(f"/proc/{pid}/cwd").readlink()
    except OSError:
        return
    yield working_directory
    for argument in command_line(pid):
        folder = working_directory / argument.rpartition("=")[2]
        if folder not in (working_directory, Path("/")) and folder.is_dir():
            yield folder


def _files_below(start: Path) -> Iterator[Path]:
    """Yield the files below a folder, those near it first; hidden folders and links are left out."""
    folders = deque([(start, 0)])
    entries_left = MAX_ENTRIES
    while folders:
        folder, depth = folders.popleft()
        try:
            entries = os.scandir(folder)
        except OSError:
            continue
        with entries:
            for entry in entries:
                entries_left -= 1
                if entries_left < 0:
                    return
                if not entry.is_dir(follow_symlinks=False):
                    yield Path(entry.path)
                elif (
                    depth < MAX_DEPTH
                    and not entry.name.startswith(".")
                    and entry.name not in SKIPPED_FOLDERS
                ):
                    folders.append((Path(entry.path), depth + 1))


def _file_time(path: Path) -> int:
    match = EVENT_FILE.fullmatch(path.name)
    return int(match["time"]) if match is not None else 0
