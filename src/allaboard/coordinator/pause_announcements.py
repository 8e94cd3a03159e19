"""When it is told that all wait for a checkpoint or an evaluation of somebody. Pure but for its memory."""

from __future__ import annotations

from allaboard.analysis.stalls.checkpoint_pauses import pause_line
from allaboard.facts import JobView

FIRST = 6.0
"""Seconds that the first pause must have lasted to be told; twice that the second, and so on: what comes
with every epoch is told a few times."""


class PauseAnnouncements:
    """What was told of pauses so far."""

    def __init__(self) -> None:
        self._least = FIRST
        self._told = float("-inf")

    def next_line(self, view: JobView) -> str:
        """The line to tell now; "" most of the time."""
        if view.progress_at == self._told or view.now - view.progress_at < self._least:
            return ""
        line = pause_line(view)
        if line:
            self._told = view.progress_at
            self._least *= 2
        return line
