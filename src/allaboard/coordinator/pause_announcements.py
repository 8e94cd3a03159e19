"""When to announce that all members wait for a checkpoint or an evaluation. Pure but for its memory."""

from __future__ import annotations

from allaboard.analysis.stalls.expected_pauses import pause_line
from allaboard.facts import JobView

FIRST_PAUSE_S = 6.0
"""How long the first pause must have lasted to be announced. Twice that for the second, and so on: a pause
that comes with every epoch is announced a few times."""


class PauseAnnouncements:
    """Announces pauses, and remembers which it has announced."""

    def __init__(self) -> None:
        self._min_pause_s = FIRST_PAUSE_S
        self._announced_progress_at = float("-inf")
        """Time of the last progress before the pause that was announced."""

    def next_line(self, view: JobView) -> str:
        """Return the line to announce now; "" most of the time."""
        pause = view.now - view.progress_at
        if view.progress_at == self._announced_progress_at or pause < self._min_pause_s:
            return ""
        line = pause_line(view)
        if line:
            self._announced_progress_at = view.progress_at
            self._min_pause_s *= 2
        return line
