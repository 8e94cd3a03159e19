"""The table of ranks: which are shown, in which order, in which columns. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from allaboard.faces.watch.figures import format_rate, format_share, format_step_time
from allaboard.faces.watch.run_summary import TROUBLED, place_of, wait_of
from allaboard.facts import Activity, RankState
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
"""Room that the columns without a width need together."""


def select_ranks(
    ranks: Sequence[RankState], filter_name: str, order_name: str, search: str
) -> list[RankState]:
    """Return the ranks that are shown, in their order. ``search`` is a part of a name, host or place, or a
    rank."""
    wanted = FILTERS[filter_name]
    words = search.lower().split()
    shown = [r for r in ranks if wanted(r) and (not words or _matches(r, words))]
    return sorted(shown, key=ORDERS[order_name])


def _matches(rank: RankState, words: Sequence[str]) -> bool:
    text = (
        f"{rank.name} rank {rank.rank} {rank.host} {rank.pid} {rank.activity} {rank.operation} {rank.file} "
        f"{rank.function} {rank.end}"
    ).lower()
    return all(word in text for word in words)


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
    columns = [c for c in COLUMNS if c.title not in empty]
    fixed = [c for c in columns if c.width]
    while fixed and sum(c.width + 1 for c in fixed) + MIN_FREE_CHARS > width:
        least = min(fixed, key=lambda c: c.importance)
        if least.importance >= 9:
            break
        fixed.remove(least)
    free_width = max(12, width - sum(c.width + 1 for c in fixed) - 1)
    free = [c for c in columns if not c.width]
    kept_titles = {c.title for c in fixed}
    return tuple(
        c if c.width else c._replace(width=free_width // len(free))
        for c in columns
        if not c.width or c.title in kept_titles
    )


def header(columns: Sequence[Column]) -> str:
    """Return the headings as one line."""
    return " ".join(c.title.ljust(c.width)[: c.width] for c in columns)


def cells(rank: RankState, columns: Sequence[Column]) -> list[str]:
    """Return the cells of one rank, each as wide as its column, cut with an ellipsis."""
    return [_fit(c.text(rank), c.width) for c in columns]


def _fit(text: str, width: int) -> str:
    return text.ljust(width) if len(text) <= width else f"{text[: width - 1]}…"
