"""The process that `allaboard run --metrics` starts beside the job."""

from __future__ import annotations

import asyncio
from pathlib import Path

from allaboard.faces.metrics.metrics_settings import MetricsSettings
from allaboard.faces.metrics.serve_metrics import MetricsFace
from allaboard.faces.sidecar.lasting_source import follow_folder
from allaboard.faces.sidecar.problem_notes import ProblemNotes, write_to_agent
from allaboard.faces.sidecar.sidecar_run import await_journal, read_settings, yield_to_training


async def _report(settings: MetricsSettings) -> None:
    run_dir = Path(settings.run_dir)
    await await_journal(run_dir)
    notes = ProblemNotes(write_to_agent)
    await MetricsFace(follow_folder(run_dir, "metrics", notes), settings, notes).run()


if __name__ == "__main__":
    yield_to_training()
    asyncio.run(_report(read_settings(MetricsSettings)))
