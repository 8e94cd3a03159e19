"""What every rank did over the run, as a letter per rank and moment; a bounded number of moments. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

MAX_MOMENTS = 1200
"""Moments that are kept at most; then every other one goes."""
MAX_LETTERS = 20_000_000
"""Letters that are kept: a job of 100,000 ranks has 200 moments."""
ABSENT = " "
"""Letter of a rank that did not exist at that moment."""


class _Moment(NamedTuple):
    elapsed_s: float
    columns: dict[str, int]
    letters: str


class Lanes(NamedTuple):
    """The timelines of some ranks."""

    times: list[float]
    """The moments, in seconds since the run began."""
    lanes: list[str]
    """For each rank a letter per moment."""


class ActivityTimeline:
    """Keeps the letters of all ranks. A rank is known by its name, since members come and go."""

    def __init__(self, max_moments: int = MAX_MOMENTS, max_letters: int = MAX_LETTERS) -> None:
        self._max_moments, self._max_letters = max_moments, max_letters
        self._moments: list[_Moment] = []
        self._names: tuple[str, ...] = ()
        self._columns: dict[str, int] = {}
        self._interval_s = 0.0

    def add(self, elapsed_s: float, names: Sequence[str], letters: str) -> bool:
        """Take in what the ranks do now; return False if it is too soon after the last moment."""
        if self._moments and elapsed_s - self._moments[-1].elapsed_s <= self._interval_s:
            return False
        if tuple(names) != self._names:
            self._names = tuple(names)
            self._columns = {name: index for index, name in enumerate(names)}
        self._moments.append(_Moment(round(elapsed_s, 2), self._columns, letters))
        limit = min(self._max_moments, max(8, self._max_letters // max(1, len(letters))))
        if len(self._moments) >= limit:
            del self._moments[1::2]
            self._interval_s = 0.75 * self._moments[-1].elapsed_s / len(self._moments)
        return True

    def lanes(self, names: Sequence[str]) -> Lanes:
        """Return the timelines of these ranks."""
        lanes = [
            "".join(_letter(moment, name) for moment in self._moments)
            for name in names
        ]  # fmt: skip
        return Lanes([m.elapsed_s for m in self._moments], lanes)


def _letter(moment: _Moment, name: str) -> str:
    column = moment.columns.get(name)
    return moment.letters[column] if column is not None else ABSENT
