"""All ranks as one compact drawing: a small cell for each, neighbours that did the same as one box. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from allaboard.facts import Activity, RankState

MIN_RANKS = 256
"""Ranks above which the grid is drawn compactly."""
MAX_RANKS = 16_384
"""Ranks that the drawing has room for."""
COLUMNS, WIDE_COLUMNS, MAX_NARROW_RANKS = 64, 128, 1024
"""Cells of a row, of up to so many ranks and of more."""
WIDTH, LEFT = 1160.0, 52.0
MAX_BOXES = 6000
"""Boxes above which the page would become too large."""
MAX_TITLES = 2000
"""Boxes that say what they are when pointed at; usual ones go without where there are more."""


class GridBox(msgspec.Struct, frozen=True, kw_only=True):
    """Some neighbouring ranks of a row that did the same."""

    x: float
    y: float
    width: float
    activity: Activity
    """What they did."""
    title: str
    """Who they are, and what they did; "" if the drawing has too many boxes."""
    is_awaited: bool
    """True if others wait for it."""
    letter_x: float
    """Where its letter stands; 0 for none."""


class RankGrid(msgspec.Struct, frozen=True, kw_only=True):
    """The whole drawing."""

    height: float
    cell: float
    """Width and height of a cell."""
    boxes: tuple[GridBox, ...]
    gaps: str
    """Path of the lines between cells."""
    rows: tuple[tuple[float, str], ...]
    """Height and label of each row that has one: the rank of its first cell."""


def lay_out_grid(ranks: Sequence[RankState]) -> RankGrid | None:
    """Return the drawing; None of few ranks, which have larger cells, and of too many to be drawn."""
    if not MIN_RANKS < len(ranks) <= MAX_RANKS:
        return None
    columns = COLUMNS if len(ranks) <= MAX_NARROW_RANKS else WIDE_COLUMNS
    cell = (WIDTH - LEFT) / columns
    runs = _runs(ranks, columns)
    if len(runs) > MAX_BOXES:
        return None
    common = Counter(r.activity for r in ranks).most_common(1)[0][0]
    boxes = []
    for begin, end in runs:
        state, end_state = ranks[begin], ranks[end - 1]
        is_usual = state.activity is common and not state.awaited_by
        row, column = divmod(begin, columns)
        x = LEFT + column * cell
        width = (end - begin) * cell
        names = state.name if end - begin == 1 else f"{state.name} to {end_state.name}"
        awaited = f", awaited by {state.awaited_by}" if state.awaited_by else ""
        boxes.append(
            GridBox(
                x=round(x, 1), y=round(row * cell, 1), width=round(width, 1),
                activity=state.activity, is_awaited=bool(state.awaited_by),
                title="" if is_usual and len(runs) > MAX_TITLES
                else f"{names}: {state.activity}{awaited}",
                letter_x=round(x + cell / 2, 1) if not is_usual else 0.0,
            )
        )  # fmt: skip
    height = round(-(-len(ranks) // columns) * cell, 1)
    lines = "".join(f"M{LEFT + n * cell:g} 0V{height:g}" for n in range(columns + 1))
    lines += "".join(f"M{LEFT:g} {n * cell:g}H{WIDTH:g}" for n in range(1, int(height / cell) + 1))
    every = max(1, round(height / cell / 16))
    return RankGrid(
        height=height,
        cell=cell,
        boxes=tuple(boxes),
        gaps=lines,
        rows=tuple(
            (round((n + 0.85) * cell, 1), ranks[n * columns].name.rpartition(" ")[2])
            for n in range(0, -(-len(ranks) // columns), every)
        ),
    )


def _runs(ranks: Sequence[RankState], columns: int) -> list[tuple[int, int]]:
    """Return begin and end of neighbours of one row that did the same; whoever is awaited is alone."""
    runs: list[tuple[int, int]] = []
    begin = 0
    for index in range(1, len(ranks) + 1):
        if index < len(ranks) and index % columns:
            neighbour, rank = ranks[index - 1], ranks[index]
            is_alike = rank.activity is neighbour.activity
            if is_alike and not rank.awaited_by and not neighbour.awaited_by:
                continue
        runs.append((begin, index))
        begin = index
    return runs
