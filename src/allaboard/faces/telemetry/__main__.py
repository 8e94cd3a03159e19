"""The process that `allaboard run --otlp` starts beside the job."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from allaboard.faces.sidecar.lasting_source import follow_folder
from allaboard.faces.sidecar.problem_notes import ProblemNotes, write_to_agent
from allaboard.faces.sidecar.sidecar_run import await_journal, read_settings, yield_to_training
from allaboard.faces.telemetry.run_telemetry import RunTelemetry
from allaboard.faces.telemetry.telemetry_settings import TelemetrySettings


async def _send(settings: TelemetrySettings) -> None:
    run_dir = Path(settings.run_dir)
    await await_journal(run_dir)
    notes = ProblemNotes(write_to_agent)
    source = follow_folder(run_dir, "metrics and findings", notes)
    await RunTelemetry(source, settings, notes).run()


if __name__ == "__main__":
    yield_to_training()
    asyncio.run(_send(read_settings(TelemetrySettings)))
    os._exit(0)  # threads that still send must not hold the end of the run
