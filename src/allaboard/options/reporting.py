"""The faces that report on a run to people and to other programs: what was asked for, checked before the job
starts, and started beside it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from allaboard.options.metrics_options import add_metrics_options, choose_metrics
from allaboard.options.notify_options import add_notify_options, choose_notifications
from allaboard.options.telemetry_options import add_telemetry_option, choose_telemetry
from allaboard.options.tracker_options import add_tracker_options, choose_trackers

if TYPE_CHECKING:
    import msgspec

    from allaboard.configuration.launcher_context import LauncherContext
    from allaboard.launch.sidecar_process import Sidecar


class Reporter(NamedTuple):
    """One face that is to be started."""

    subject: str
    """What it reports, for people."""
    module: str
    """The module that its process runs."""
    settings: msgspec.Struct
    """What it is made with; ``run_dir`` is set when it starts."""
    log_name: str
    """File of the run folder with what it has to complain about."""
    last_words_s: float = 0.0
    """Seconds for which the end of `run` waits for it."""


def add_reporting_options(add: Callable[..., argparse.Action]) -> None:
    """Declare the options. ``add`` is the `add_argument` of a parser or of a group."""
    add_metrics_options(add)
    add_telemetry_option(add)
    add_tracker_options(add)
    add_notify_options(add)


def choose_reporters(
    options: argparse.Namespace, joined: LauncherContext | None, environment: Mapping[str, str]
) -> tuple[Reporter, ...]:
    """Return the faces that the options ask for. Raises UsageError."""
    reporters = []
    # Of a job that a launcher starts, the first rank's agent reports: it knows all ranks, and the agents of
    # one host cannot share a port.
    is_first_task = joined is None or joined.rank <= 0
    metrics = choose_metrics(options)
    if metrics is not None and is_first_task:
        reporters.append(Reporter("metrics", "allaboard.faces.metrics", metrics, "metrics.log"))
    telemetry = choose_telemetry(options)
    if telemetry is not None and is_first_task:
        from allaboard.faces.telemetry.telemetry_settings import LAST_WORDS_S as TELEMETRY_S

        reporters.append(
            Reporter(
                "metrics and findings (--otlp)",
                "allaboard.faces.telemetry",
                telemetry,
                "telemetry.log",
                TELEMETRY_S,
            )
        )
    trackers = choose_trackers(options)
    if trackers is not None and is_first_task:
        from allaboard.faces.experiments.tracker_settings import LAST_WORDS_S as TRACKERS_S

        reporters.append(
            Reporter(
                "scalars and findings",
                "allaboard.faces.experiments",
                trackers,
                "trackers.log",
                TRACKERS_S,
            )
        )
    notifications = choose_notifications(options, is_first_task)
    if notifications is not None and (is_first_task or _is_first_on_host(environment)):
        from allaboard.faces.notify.notify_settings import LAST_WORDS_S as NOTIFY_S

        # When the first host is lost, another one leads, and its agent's face is the one that tells.
        last_words_s = NOTIFY_S if notifications.urls or notifications.on_finding else 0.0
        reporters.append(
            Reporter("faults", "allaboard.faces.notify", notifications, "notify.log", last_words_s)
        )
    return tuple(reporters)


def _is_first_on_host(environment: Mapping[str, str]) -> bool:
    from allaboard.configuration.local_rank import is_first_on_host

    return is_first_on_host(environment)


def start_reporters(reporters: tuple[Reporter, ...], run_dir: Path) -> tuple[Sidecar, ...]:
    """Start the faces; say so of one that cannot be started, and go on."""
    if not reporters:
        return ()
    import msgspec

    from allaboard.launch.sidecar_process import start_sidecar

    started = []
    for reporter in reporters:
        settings = msgspec.structs.replace(reporter.settings, run_dir=str(run_dir))
        try:
            started.append(
                start_sidecar(
                    reporter.module,
                    msgspec.json.encode(settings),
                    run_dir,
                    reporter.log_name,
                    f"{reporter.subject} are no longer reported: the process that does it has ended; why: "
                    f"{run_dir / reporter.log_name}",
                    reporter.last_words_s,
                )
            )
        except OSError as error:
            reason = error.strerror or error
            sys.stderr.write(f"allaboard: {reporter.subject} are not reported: {reason}\n")
            sys.stderr.flush()
    return tuple(started)
