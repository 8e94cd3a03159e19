"""Finds the run that a person means: the newest one here, a folder, or an address."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from allaboard.facts import Address
from allaboard.feed.journal_replay import JOURNAL_NAME

RUNS_FOLDER = ".allaboard"
"""Folder of the runs, in the folder in which they were started."""


class WatchTarget(NamedTuple):
    """What is watched: a run folder, or an address."""

    folder: Path | None
    """The run folder; None for an address."""
    address: Address | None = None
    """The address; None for a folder."""


class NoSuchRun(NamedTuple):
    """Why there is nothing to watch."""

    reason: str
    """A sentence with what to type instead."""


def find_target(text: str, working_folder: Path) -> WatchTarget | NoSuchRun:
    """Return what ``text`` names: "" is the newest run of the working folder."""
    if not text:
        return _newest_run(working_folder, "here")
    path = Path(text)
    if is_run_folder(path):
        return WatchTarget(path)
    if path.is_dir():
        return _newest_run(path, f"in {text}")
    address = Address.from_endpoint(text)
    if address.host and address.number and "/" not in address.host:
        return WatchTarget(None, address)
    known_run = working_folder / RUNS_FOLDER / text
    if is_run_folder(known_run):
        return WatchTarget(known_run)
    return NoSuchRun(
        f"{text}: no run folder and no HOST:PORT; without an argument, the newest run of this folder is "
        "watched"
    )


def is_run_folder(folder: Path) -> bool:
    """Return True if a run has written its journal there."""
    return (folder / JOURNAL_NAME).is_file()


def runs_in(folder: Path) -> list[Path]:
    """Return the run folders in a folder, the newest first."""
    try:
        runs = [path for path in folder.iterdir() if is_run_folder(path)]
    except OSError:
        return []
    return sorted(runs, key=_started_at, reverse=True)


def _started_at(run: Path) -> tuple[str, str]:
    """Return a key by which runs are sorted: names begin with the time of the start; those of --run-dir do
    not, and go by the time of their journal."""
    head = run.name[:15]
    if len(head) == 15 and head[:8].isdecimal() and head[8] == "-":
        return head, run.name
    modified = (run / JOURNAL_NAME).stat().st_mtime
    return time.strftime("%Y%m%d-%H%M%S", time.localtime(modified)), run.name


def _newest_run(folder: Path, where: str) -> WatchTarget | NoSuchRun:
    if is_run_folder(folder):
        return WatchTarget(folder)
    fallback = Path(tempfile.gettempdir()) / f"allaboard-{os.getuid()}"
    for runs in (runs_in(folder / RUNS_FOLDER), runs_in(folder), runs_in(fallback)):
        if runs:
            return WatchTarget(runs[0])
    return NoSuchRun(
        f"no run {where}; start one: allaboard run -n 2 train.py, or name a run folder or HOST:PORT"
    )
