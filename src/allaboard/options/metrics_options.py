"""The options ``--metrics`` and ``--metrics-file``: what they take, and the face that they start."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from allaboard.options.usage_error import raise_usage_error

if TYPE_CHECKING:
    from allaboard.faces.metrics.metrics_settings import MetricsSettings

LOOPBACK = "127.0.0.1"
TEXT_FILE_SUFFIX = ".prom"
"""Ending of the files that node_exporter reads."""


def add_metrics_options(add: Callable[..., argparse.Action]) -> None:
    """Declare the options. ``add`` is the `add_argument` of a parser or of a group."""
    add(
        "--metrics",
        metavar="[HOST:]PORT",
        default="",
        help="serve the run's metrics to Prometheus at this port, on 127.0.0.1 unless a HOST is given. Needs "
        "prometheus-client: pip install 'allaboard[metrics]'",
    )
    add(
        "--metrics-file",
        metavar="FILE.prom",
        type=Path,
        help="write the metrics into a file for the textfile collector of node_exporter",
    )


def choose_metrics(options: argparse.Namespace) -> MetricsSettings | None:
    """Return what is reported; None if neither option is given.

    Raises:
        UsageError: prometheus-client is not installed, or a value is malformed.
    """
    if not options.metrics and options.metrics_file is None:
        return None
    option = "--metrics" if options.metrics else "--metrics-file"
    if find_spec("prometheus_client") is None:
        raise_usage_error(
            f"{option}: metrics need prometheus-client, which is not installed: "
            "pip install 'allaboard[metrics]'"
        )
    from allaboard.faces.metrics.metrics_settings import MetricsSettings

    host, port = _parse_address(options.metrics) if options.metrics else ("", -1)
    file = _check_file(options.metrics_file) if options.metrics_file is not None else ""
    return MetricsSettings(host=host, port=port, file=file)


def _parse_address(text: str) -> tuple[str, int]:
    from allaboard.facts import Address

    address = Address(LOOPBACK, text) if text.isdecimal() else Address.from_endpoint(text)
    if not address.host or not address.port.isdecimal() or int(address.port) > 65535:
        raise_usage_error(
            f"--metrics {text}: expected a port or HOST:PORT, e.g. --metrics 9400, or "
            "--metrics 0.0.0.0:9400 to serve other hosts too"
        )
    return address.host, int(address.port)


def _check_file(path: Path) -> str:
    if path.suffix != TEXT_FILE_SUFFIX:
        raise_usage_error(
            f"--metrics-file {path}: node_exporter reads files that end in {TEXT_FILE_SUFFIX}: "
            f"--metrics-file {path.with_suffix(TEXT_FILE_SUFFIX)}"
        )
    absolute = path.absolute()
    if not absolute.parent.is_dir():
        raise_usage_error(
            f"--metrics-file {path}: there is no folder {path.parent}; it is the folder that node_exporter "
            "was given as --collector.textfile.directory"
        )
    return str(absolute)
