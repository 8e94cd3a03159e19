"""One failure that a framework raises for a known mistake in the set-up of a distributed job."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from allaboard.facts import Raised


class Remedy(NamedTuple):
    """What is known about an exception."""

    cause: str
    """Why it was raised: a clause that follows its type and place."""
    fix: str
    """What to do."""


@dataclass(frozen=True, kw_only=True)
class KnownMistake:
    """One mistake, as its exceptions word it."""

    pattern: str
    """Regular expression of the exception's message; its groups fill the texts."""
    cause: str
    """Why it is raised: a clause without a subject of its own."""
    fix: str
    """What to do."""
    raised_in: str = ""
    """Regular expression of "file function: source line" of which one frame must have it, where the message
    alone has other causes, too; "" if it has none."""
    sample: str
    """A message of it."""
    sample_frame: tuple[str, str] = ("", "")
    """File and source line of a frame of the sample, if ``raised_in`` asks for one."""
    near_miss: str
    """A message that looks similar and is not one of these."""
    source: str
    """Versions that raise it so, or the sources from which its wording is."""

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """Return the compiled pattern."""
        return re.compile(self.pattern, re.DOTALL)

    def remedy_of(self, error: Raised) -> Remedy | None:
        """Return the remedy if this exception is raised for this mistake, else None."""
        match = self.compiled.search(error.message)
        if match is None or not self._is_raised_there(error):
            return None
        groups = {name: text or "" for name, text in match.groupdict().items()}
        return Remedy(self.cause.format(**groups), self.fix.format(**groups))

    def _is_raised_there(self, error: Raised) -> bool:
        if not self.raised_in:
            return True
        frames = (*error.frames, *([error.where] if error.where is not None else []))
        places = (f"{f.file} {f.function}: {f.text}".replace("\\", "/") for f in frames)
        return any(re.search(self.raised_in, path) for path in places)
