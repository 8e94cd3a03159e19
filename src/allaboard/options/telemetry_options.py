"""The option ``--otlp``: what it takes, and the face that it starts."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from allaboard.options.usage_error import raise_usage_error

if TYPE_CHECKING:
    from allaboard.faces.telemetry.telemetry_settings import TelemetrySettings

PARTS = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
"""Packages that the extra `otel` brings."""


def add_telemetry_option(add: Callable[..., argparse.Action]) -> None:
    """Declare the option. ``add`` is the `add_argument` of a parser or of a group."""
    add(
        "--otlp",
        metavar="URL",
        default="",
        help="send metrics, findings and rounds to an OpenTelemetry collector over HTTP, e.g. "
        "http://127.0.0.1:4318. Needs the SDK: pip install 'allaboard[otel]'",
    )


def choose_telemetry(options: argparse.Namespace) -> TelemetrySettings | None:
    """Return where telemetry goes; None if it goes nowhere.

    Raises:
        UsageError: the SDK is not installed, or the URL is malformed. No message repeats it.
    """
    if not options.otlp:
        return None
    try:
        parts = urlsplit(options.otlp)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        raise_usage_error(
            "--otlp expects the base URL of a collector's HTTP port, e.g. --otlp http://127.0.0.1:4318 (what "
            "was given is not repeated here)"
        )
    if not all(map(_is_installed, PARTS)):
        raise_usage_error(
            "--otlp: telemetry needs OpenTelemetry's SDK and its exporter over HTTP, which are not "
            "installed: pip install 'allaboard[otel]'"
        )
    from allaboard.faces.telemetry.telemetry_settings import TelemetrySettings

    return TelemetrySettings(url=options.otlp)


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # not even the packages around it
        return False
