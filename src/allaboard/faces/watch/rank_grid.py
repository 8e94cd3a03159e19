"""All ranks at a glance: a letter each, in the order of the ranks, a line per host where that fits. Pure."""

from __future__ import annotations

from itertools import groupby

from allaboard.faces.watch.activity_marks import MARKS, legend, style_of
from allaboard.facts import Activity, RankState, Snapshot
from allaboard.report.plain_text import clean

MAX_LABELLED_HOSTS = 8
"""Hosts that get a line of their own; of more, the grid runs on."""
MAX_LABEL_CHARS = 16
GROUP = 10
"""Letters between two gaps, so that one can count."""

Piece = tuple[str, str]
"""Text and its style."""


def grid_lines(snapshot: Snapshot, width: int) -> list[list[Piece]]:
    """Return the lines of the grid, and the legend as the last one; [] if there is no rank."""
    ranks = snapshot.ranks
    if not ranks:
        return []
    # While all wait, those that are awaited are the ones to look at; while all train, nobody is.
    somebody_waits = any(r.activity is Activity.WAITING for r in ranks)
    hosts = {r.host for r in ranks}
    lines: list[list[Piece]] = []
    if 1 < len(hosts) <= MAX_LABELLED_HOSTS:
        label_width = min(MAX_LABEL_CHARS, max(len(h) for h in hosts))
        by_host = sorted(ranks, key=lambda r: r.host)
        for host, members in groupby(by_host, key=lambda r: r.host):
            label = clean(host)[:label_width].ljust(label_width + 1)
            lines += _rows(list(members), width, label, somebody_waits)
    else:
        lines = _rows(list(ranks), width, "", somebody_waits)
    return [*lines, legend(ranks)]


def _rows(
    ranks: list[RankState], width: int, label: str, somebody_waits: bool
) -> list[list[Piece]]:
    numbers = max(len(str(r.rank)) for r in ranks) + 1 if len(ranks) > width - len(label) else 0
    room = max(GROUP + 1, width - len(label) - numbers)
    per_row = max(GROUP, room * GROUP // (GROUP + 1) // GROUP * GROUP)
    rows = []
    for begin in range(0, len(ranks), per_row):
        head = label if begin == 0 else " " * len(label)
        row: list[Piece] = [(head, "bold")] if head else []
        if numbers:
            row.append((f"{ranks[begin].rank:>{numbers - 1}} ", "dim"))
        for position, rank in enumerate(ranks[begin : begin + per_row]):
            if position and position % GROUP == 0:
                row.append((" ", ""))
            is_awaited = somebody_waits and rank.awaited_by > 0
            piece = MARKS[rank.activity].letter, style_of(rank, is_awaited)
            # Neighbours in one style are one piece: thousands of ranks mostly do the same.
            if row and row[-1][1] == piece[1]:
                row[-1] = row[-1][0] + piece[0], piece[1]
            else:
                row.append(piece)
        rows.append(row)
    return rows
