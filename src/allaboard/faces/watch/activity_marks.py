"""A letter and a style for what a rank does: the letter for those whose screen, or eye, does not show the
colour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from allaboard.facts import Activity, RankState


class Mark(NamedTuple):
    """How one activity is shown."""

    letter: str
    """One character."""
    style: str
    """Style in rich's words."""


MARKS = {
    Activity.STARTING: Mark("s", "blue"),
    Activity.IMPORTING: Mark("i", "blue"),
    Activity.OWN_CODE: Mark("o", "cyan"),
    Activity.AT_GATE: Mark("g", "magenta"),
    Activity.JOINING: Mark("j", "magenta"),
    Activity.JOINED: Mark("J", "cyan"),
    Activity.TRAINING: Mark("T", "green"),
    Activity.WAITING: Mark("w", "yellow"),
    Activity.CHECKPOINT: Mark("c", "cyan"),
    Activity.EVALUATION: Mark("e", "cyan"),
    Activity.SERVING: Mark("S", "green"),
    Activity.STOPPED: Mark("X", "bold red reverse"),
    Activity.LEAVING: Mark("l", "blue"),
    Activity.DONE: Mark(".", "dim"),
    Activity.ENDED: Mark("x", "dim"),
    Activity.FAILED: Mark("F", "bold red reverse"),
    Activity.LOST: Mark("?", "bold red reverse"),
}
AWAITED_STYLE = "bold reverse"
"""Added for a rank that others wait for; it shows without colours, too."""


def style_of(rank: RankState, is_awaited: bool) -> str:
    """Return the style of a rank."""
    style = MARKS[rank.activity].style
    return f"{style} {AWAITED_STYLE}" if is_awaited and "reverse" not in style else style


def legend(ranks: Iterable[RankState]) -> list[tuple[str, str]]:
    """Return the activities that occur, each with its letter and count, as pieces of text and styles."""
    counts = Counter(r.activity for r in ranks)
    pieces: list[tuple[str, str]] = []
    for activity, mark in MARKS.items():
        if counts[activity]:
            pieces += [
                ("  ", ""),
                (mark.letter, mark.style),
                (f" {activity} {counts[activity]}", ""),
            ]
    return pieces[1:]
