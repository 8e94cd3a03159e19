"""What a scheduler sees of a job while it runs: health and readiness files, and the status of a TrainJob."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from allaboard.contracts import Clock
from allaboard.facts import Finding, JobView
from allaboard.schedulers.health_files import HealthFiles
from allaboard.schedulers.scheduler_options import SchedulerOptions

if TYPE_CHECKING:
    from allaboard.schedulers.trainer_status import TrainerStatusReporter


class WatchedJob(Protocol):
    """The part of a job's state that is shown."""

    @property
    def opened_at(self) -> float | None:
        """When the roll call was complete (s); None if it is not."""

    @property
    def progress_at(self) -> float:
        """When any member last did anything new (s)."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings so far."""

    def recent_view(self, now: float) -> JobView:
        """Return a picture of the job that may be a moment old."""


class JobSignals:
    """Keeps all of them up to date, over all rounds of a run. Nothing here raises or waits."""

    def __init__(
        self, options: SchedulerOptions, clock: Clock, environment: Mapping[str, str] = os.environ
    ) -> None:
        self._clock = clock
        self._files = HealthFiles(options.health_path, options.ready_path)
        # One reports for all.
        is_first = environment.get("PET_NODE_RANK", environment.get("RANK", "0")) == "0"
        self._reporter: TrainerStatusReporter | None = None
        self._problem = ""
        if options.trainer_status and is_first:
            self._reporter, self._problem = _make_reporter(environment)

    def update(self, now: float, job: WatchedJob, utc_s: float) -> None:
        """Show the job as it is ``now`` (s, CLOCK_MONOTONIC); ``utc_s`` is the wall time then."""
        self._files.update(now, job.opened_at, job.progress_at, utc_s)
        if self._reporter is not None and self._reporter.is_due(now):
            self._reporter.report(now, self._trainer_status(now, job))

    def close(self, now: float, job: WatchedJob) -> str:
        """Show the end; return what could not be shown, "" if nothing."""
        self._files.close()
        error = self._files.write_error or self._problem
        if self._reporter is not None:
            self._reporter.close(self._trainer_status(now, job))
            error = error or self._reporter.error
        return error

    def _trainer_status(self, now: float, job: WatchedJob) -> dict[str, Any]:
        from allaboard.schedulers.trainer_status import trainer_status

        return trainer_status(job.recent_view(now), job.findings, self._clock.utc(now))


def _make_reporter(environment: Mapping[str, str]) -> tuple[TrainerStatusReporter | None, str]:
    """Return who reports to Trainer's server, or None and why. TLS is loaded only here."""
    from allaboard.schedulers.trainer_status import (
        TrainerStatusReporter,
        find_trainer_server,
        missing_server,
    )

    server = find_trainer_server(environment)
    return (TrainerStatusReporter(server) if server is not None else None), missing_server(
        environment
    )
