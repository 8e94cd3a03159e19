"""Writes metrics into a file for the textfile collector of node_exporter: whole, by rename."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prometheus_client import write_to_textfile

WRITE_INTERVAL_S = 5.0
"""Seconds between two writes: node_exporter is scraped no more often."""


class MetricsFile:
    """The file. An error of the disk is kept in ``write_error``; the next write tries again."""

    def __init__(self, path: Path, registry: Any) -> None:
        self._path, self._registry = path, registry
        self._next_at = 0.0
        self.write_error = ""
        """Why the last write failed; "" if it did not."""

    def is_due(self, now: float) -> bool:
        """Return True, and note it, if the last time was long enough ago."""
        if now < self._next_at:
            return False
        self._next_at = now + WRITE_INTERVAL_S
        return True

    def write(self) -> None:
        """Write the file now."""
        try:
            write_to_textfile(str(self._path), self._registry)
            self.write_error = ""
        except OSError as error:
            self.write_error = (error.strerror or str(error)).lower()
