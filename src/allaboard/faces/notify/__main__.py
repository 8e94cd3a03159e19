"""The process that `allaboard run --notify` starts beside the job."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from pathlib import Path

from allaboard.faces.notify.notify_settings import NotifySettings
from allaboard.faces.notify.run_notifier import RunNotifier
from allaboard.faces.sidecar.lasting_source import follow_folder
from allaboard.faces.sidecar.problem_notes import ProblemNotes, write_to_agent
from allaboard.faces.sidecar.sidecar_run import await_journal, read_settings, yield_to_training


async def _notify(settings: NotifySettings) -> None:
    run_dir = Path(settings.run_dir)
    await await_journal(run_dir)
    notes = ProblemNotes(write_to_agent)
    source = follow_folder(run_dir, "faults", notes)
    await RunNotifier(source, settings, notes, time.monotonic).run()


if __name__ == "__main__":
    logging.disable()  # apprise logs URLs
    yield_to_training()
    asyncio.run(_notify(read_settings(NotifySettings)))
    os._exit(0)  # threads that still send must not hold the end of the run
