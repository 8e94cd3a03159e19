"""Files by which a kubelet's probes, or any script, see that a job is healthy and that it has started.

``--health-file`` has the time of the job's last progress as its own (mtime): a liveness probe compares it
with the clock. ``--ready-file`` exists from the complete roll call to the end of the run.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

MIN_INTERVAL_S = 1.0
"""Time between two changes of the file: a probe does not look more often."""


def last_sign_of_life(now: float, rolled_at: float | None, progress_at: float) -> float:
    """Return when the job last showed that it is healthy (s): now while it gathers, since a pod that waits
    for others is not to be killed for it; then its last progress."""
    return now if rolled_at is None else progress_at


class HealthFiles:
    """Writes both files; an error is kept in ``write_error`` and disturbs nothing."""

    def __init__(self, health_path: Path | None, ready_path: Path | None) -> None:
        self._health_path = health_path
        self._ready_path = ready_path
        self._next_at = 0.0
        self._is_ready = False
        self.write_error = ""
        """The first error; "" if there was none."""
        # One of an earlier container would say that this job is ready.
        self._remove_ready_file()

    def update(self, now: float, rolled_at: float | None, progress_at: float, utc_s: float) -> None:
        """Write what is due. Times are CLOCK_MONOTONIC (s); ``utc_s`` is the wall time at ``now``."""
        if self._ready_path is not None and rolled_at is not None and not self._is_ready:
            self._is_ready = True
            self._touch(self._ready_path, utc_s)
        if self._health_path is None or now < self._next_at:
            return
        self._next_at = now + MIN_INTERVAL_S
        sign_at = last_sign_of_life(now, rolled_at, progress_at)
        self._touch(self._health_path, utc_s - max(0.0, now - sign_at))

    def close(self) -> None:
        """Say that the job is not ready any more."""
        self._remove_ready_file()

    def _remove_ready_file(self) -> None:
        if self._ready_path is not None:
            with contextlib.suppress(OSError):
                self._ready_path.unlink()

    def _touch(self, path: Path, modified_at: float) -> None:
        try:
            # Not created anew: a probe must never find it missing in between.
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o644))
            os.utime(path, (modified_at, modified_at))
        except OSError as error:
            self.write_error = self.write_error or f"{error.strerror}: {path}"
