"""How a face begins that `run` has started beside the job: its settings, its priority, the first line of the
run."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TypeVar

import msgspec

from allaboard.faces.watch.run_folders import is_run_folder

Settings = TypeVar("Settings")
JOURNAL_TIMEOUT_S = 60.0
"""Seconds that a face waits for the first line of the run's journal."""
JOURNAL_POLL_S = 0.1
NICENESS = 5
"""Added to the niceness of a face: the training goes first."""


def read_settings(kind: type[Settings]) -> Settings:
    """Return the settings, which are one line of JSON on stdin: every user of the machine can read a command
    line. Raises msgspec.DecodeError."""
    return msgspec.json.decode(sys.stdin.buffer.readline(), type=kind)


def yield_to_training() -> None:
    """Lower the priority of this process."""
    os.nice(NICENESS)


async def await_journal(run_dir: Path) -> None:
    """Return once the agent, which has just started this process, writes the run's journal."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + JOURNAL_TIMEOUT_S
    while not is_run_folder(run_dir) and loop.time() < deadline:
        await asyncio.sleep(JOURNAL_POLL_S)
