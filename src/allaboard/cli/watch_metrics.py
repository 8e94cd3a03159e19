"""`allaboard watch --metrics`: reports the metrics of a run until it ends, or until Ctrl-C."""

from __future__ import annotations

import argparse
import sys


def report_metrics(options: argparse.Namespace) -> int:
    """Report the metrics. Raises UsageError if there is nothing to watch, or they cannot be reported."""
    import asyncio

    from allaboard.cli.watched_run import open_run_source
    from allaboard.options.metrics_options import choose_metrics

    settings = choose_metrics(options)
    assert settings is not None
    source = open_run_source(options)
    from allaboard.faces.metrics.serve_metrics import MetricsFace
    from allaboard.faces.sidecar.problem_notes import ProblemNotes

    notes = ProblemNotes(lambda text: print(f"allaboard: {text}", file=sys.stderr))
    try:
        asyncio.run(MetricsFace(source, settings, notes).run())
    except KeyboardInterrupt:
        pass
    return 0
