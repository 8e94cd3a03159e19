"""The table of ranks: which are shown, in which order, in which columns. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from allaboard.faces.watch.figures import format_rate, format_share, format_step_time
from allaboard.faces.watch.run_summary import place_of, wait_of
from allaboard.facts import Activity, RankState
from allaboard.feed.lane_choice import TROUBLED
from allaboard.report.plain_text import clean
from allaboard.report.servers import format_bytes

FILTERS: dict[str, Callable[[RankState], bool]] = {
    "all": lambda _: True,
    "troubled": lambda r: r.activity in TROUBLED or bool(r.awaited_by) or bool(r.loss_text),
    "waiting": lambda r: r.activity is Activity.WAITING,
    "awaited": lambda r: bool(r.awaited_by),
    "ended": lambda r: bool(r.end),
}
"""Names of the filters, in the order in which a key goes through them."""
ORDERS: dict[str, Callable[[RankState], tuple[object, ...]]] = {
    "rank": lambda r: (r.rank < 0, r.rank),
    "urgency": lambda r: (r.activity not in TROUBLED, -r.awaited_by, -r.silent_s),
    "step": lambda r: (r.step, r.rank),
    "step time": lambda r: (-(r.step_s or 0.0), r.rank),
    "waiting": lambda r: (-r.waiting, r.rank),
    "memory": lambda r: (-r.memory_nbytes, r.rank),
    "host": lambda r: (r.host, r.rank),
}
"""Names of the orders."""


class Column(NamedTuple):
    """One column of the table."""

    title: str
    """Its heading."""
    width: int
    """Its characters; 0 for a share of what is left."""
    importance: int
    """The least important columns go first in a narrow terminal."""
    text: Callable[[RankState], str]
    """The cell of a rank."""


COLUMNS = (
    Column("rank", 5, 9, lambda r: str(r.rank) if r.rank >= 0 else "?"),
    Column("name", 12, 8, lambda r: clean(r.name)),
    Column("host", 12, 2, lambda r: clean(r.host)),
    Column("does", 10, 9, lambda r: str(r.activity)),
    Column("step", 8, 9, lambda r: str(r.step) if r.step else "-"),
    Column("steps/s", 7, 1, lambda r: format_rate(r.steps_per_s)),
    Column("a step", 8, 7, lambda r: format_step_time(r.step_s)),
    Column("wait", 5, 6, lambda r: format_share(r.waiting)),
    Column("cpu", 5, 4, lambda r: f"{r.cpu:.1f}"),
    Column("memory", 8, 5, lambda r: format_bytes(r.memory_nbytes) if r.memory_nbytes else "-"),
    Column("gpu", 8, 5, lambda r: format_bytes(r.gpu_memory_nbytes or 0)),
    Column("loss", 8, 5, lambda r: r.loss_text or (f"{r.loss:.4g}" if r.loss is not None else "-")),
    Column("waits for", 0, 9, wait_of),
    Column("at", 0, 9, place_of),
)
MIN_FREE_CHARS = 36
"""Room that the columns without a width need together, however short their texts are."""
MIN_FREE_WIDTH = 12
"""Characters of a column without a width."""
MAX_MEASURED_RANKS = 256
"""Ranks whose texts decide how wide these columns are: thousands would delay the screen."""
ROOM_FOR_PLACES = 8
"""Columns below this importance make room for whom a rank waits for, and for its line."""


def select_ranks(
    ranks: Sequence[RankState], filter_name: str, order_name: str, search: str
) -> list[RankState]:
    """Return the ranks that are shown, in their order. ``search`` is a part of a name, host or place, or a
    rank."""
    passes_filter = FILTERS[filter_name]
    terms = search.lower().split()
    shown = [r for r in ranks if passes_filter(r) and (not terms or _matches(r, terms))]
    return sorted(shown, key=ORDERS[order_name])


def _matches(rank: RankState, terms: Sequence[str]) -> bool:
    text = (
        f"{rank.name} rank {rank.rank} {rank.host} {rank.pid} {rank.activity} {rank.operation} {rank.file} "
        f"{rank.function} {rank.end}"
    ).lower()
    return all(term in text for term in terms)


def choose_columns(ranks: Sequence[RankState], width: int) -> tuple[Column, ...]:
    """Return the columns that fit, with their widths."""
    empty = set()
    if len({r.host for r in ranks}) <= 1:
        empty.add("host")
    if all(r.name == f"worker {r.rank}" for r in ranks):
        empty.add("name")
    if all(r.gpu_memory_nbytes is None for r in ranks):
        empty.add("gpu")
    if all(r.loss is None and not r.loss_text for r in ranks):
        empty.add("loss")
    if not any(r.steps_per_s for r in ranks):
        empty.add("steps/s")
    columns = [c for c in COLUMNS if c.title not in empty]
    needs = {c.title: _needed_width(c, ranks) for c in columns if not c.width}
    fixed = [c for c in columns if c.width]
    while fixed:
        free_chars = width - sum(c.width + 1 for c in fixed)
        least = min(fixed, key=lambda c: c.importance)
        needed_chars = sum(needs.values()) + len(needs) if least.importance < ROOM_FOR_PLACES else 0
        if free_chars >= max(MIN_FREE_CHARS, needed_chars) or least.importance >= 9:
            break
        fixed.remove(least)
    widths = _share_width(needs, width - sum(c.width + 1 for c in fixed) - len(needs))
    kept_titles = {c.title for c in fixed}
    return tuple(
        c if c.width else c._replace(width=widths[c.title])
        for c in columns
        if not c.width or c.title in kept_titles
    )


def _needed_width(column: Column, ranks: Sequence[RankState]) -> int:
    """Return the width of the longest text, in steps of four: a duration that grows moves no column."""
    longest = max((len(column.text(r)) for r in ranks[:MAX_MEASURED_RANKS]), default=0)
    return max(MIN_FREE_WIDTH, -(-longest // 4) * 4)


def _share_width(needs: dict[str, int], width: int) -> dict[str, int]:
    """Return the width of each column without one: the shortest gets what it needs, the last all that is
    left."""
    widths = {}
    free_chars = max(width, MIN_FREE_WIDTH * len(needs))
    for number, (title, need) in enumerate(sorted(needs.items(), key=lambda item: item[1])):
        remaining = len(needs) - number - 1
        widths[title] = min(need, free_chars // (remaining + 1)) if remaining else free_chars
        free_chars -= widths[title]
    return widths


def header(columns: Sequence[Column]) -> str:
    """Return the headings as one line."""
    return " ".join(c.title.ljust(c.width)[: c.width] for c in columns)


def cells(rank: RankState, columns: Sequence[Column]) -> list[str]:
    """Return the cells of one rank, each as wide as its column, cut with an ellipsis."""
    return [_fit(c.text(rank), c.width) for c in columns]


def _fit(text: str, width: int) -> str:
    return text.ljust(width) if len(text) <= width else f"{text[: width - 1]}…"
