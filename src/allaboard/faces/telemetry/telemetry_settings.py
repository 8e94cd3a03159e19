"""Where the telemetry of a run goes."""

from __future__ import annotations

import msgspec

LAST_WORDS_S = 12.0
"""Seconds in which what happened at the end has to be sent."""


class TelemetrySettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where the telemetry goes."""

    run_dir: str = ""
    """The run folder."""
    url: str = ""
    """Base URL of the collector; ``/v1/metrics``, ``/v1/logs`` and ``/v1/traces`` are added."""
