"""Whose output is shown in the terminal, as the user asked for with ``--show`` and ``--no-prefix``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

MAX_TERMINALS = 16
"""Workers that get a pseudo-terminal: what more of them draw would not fit on a screen."""


class OutputSelection(NamedTuple):
    """Which workers' lines and progress bars are shown.

    A worker's label is its rank, or its task ("ps 0").
    """

    lines: frozenset[str] | None = None
    """Labels of the workers whose lines are shown; None: all."""
    bars: frozenset[str] | None = frozenset()
    """Labels of the workers whose progress bars are shown while they move; None: all. Empty: the first
    worker of this host."""
    prefix: bool = True
    """Write the worker's label in front of its lines."""

    def shows_lines(self, label: str) -> bool:
        """Return True if the terminal shows the lines of this worker."""
        return self.lines is None or label in self.lines

    def choose_terminals(self, tasks: Sequence[tuple[str, int]], count: int) -> frozenset[int]:
        """Return which of ``count`` workers write to a terminal of their own: those whose bars are shown.

        ``tasks``: job and index of each worker in a job with roles, else empty.
        """
        labels = [worker_label(index, tasks) for index in range(count)]
        chosen = [i for i, label in enumerate(labels) if self.shows_bars(label, i)]
        return frozenset(chosen[:MAX_TERMINALS])

    def shows_bars(self, label: str, index: int) -> bool:
        """Return True if the terminal shows the progress bars of this worker; ``index``: its place on this
        host."""
        if self.bars is None:
            return True
        return label in self.bars if self.bars else index == 0


DEFAULT_SELECTION = OutputSelection()
"""All lines, and the progress bars of the first worker of this host."""


def worker_label(index: int, tasks: Sequence[tuple[str, int]], first_rank: int = 0) -> str:
    """Return how a worker of this host is called: its rank, or its task."""
    return " ".join(map(str, tasks[index])) if tasks else str(first_rank + index)


def parse_selection(text: str, prefix: bool = True) -> OutputSelection:
    """Read the value of ``--show``: "all", "none", or labels with commas between them, as in "0,3" or
    "ps-0,worker-1".

    Raises:
        ValueError: a label is empty.
    """
    if text == "all":
        return OutputSelection(lines=None, bars=None, prefix=prefix)
    if text == "none":
        return OutputSelection(lines=frozenset(), bars=frozenset(["none"]), prefix=prefix)
    labels = [label.strip().replace("-", " ") for label in text.split(",")]
    if not all(labels):
        raise ValueError("expected all, none, or ranks with commas between them, as in 0,3")
    return OutputSelection(lines=frozenset(labels), bars=frozenset(labels), prefix=prefix)
