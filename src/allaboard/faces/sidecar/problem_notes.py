"""Says once what is not reported, and why: through a pipe that the agent reads, or on a terminal."""

from __future__ import annotations

import os
from collections.abc import Callable

MAX_NOTES = 20
"""Lines that one face writes at most: a face that fails in ever new ways must not fill the job's terminal."""
MAX_LENGTH = 800
"""Characters of a line."""
STDOUT = 1


class ProblemNotes:
    """The problems of one face. ``write_line`` takes one line without its end; it must not block."""

    def __init__(self, write_line: Callable[[str], None]) -> None:
        self._write_line = write_line
        self._open: set[str] = set()
        self._written = 0

    def report(self, problem: str, text: str) -> None:
        """Write the text, unless ``problem`` (a word that names it) is open already."""
        if problem not in self._open:
            self._open.add(problem)
            self.write(text)

    def resolve(self, problem: str, text: str = "") -> None:
        """Forget a problem, and write the text if it was open."""
        if problem in self._open:
            self._open.discard(problem)
            if text:
                self.write(text)

    def write(self, text: str) -> None:
        """Write a line."""
        if self._written < MAX_NOTES:
            self._written += 1
            self._write_line(" ".join(text.split())[:MAX_LENGTH])


def write_to_agent(text: str, pipe: int = STDOUT) -> None:
    """Write a line into the pipe to the agent. A full or broken pipe loses it: nobody may wait for the agent,
    nor end with it."""
    try:
        os.set_blocking(pipe, False)
        os.write(pipe, text.encode(errors="replace") + b"\n")
    except OSError:
        pass
