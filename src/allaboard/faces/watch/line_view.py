"""A widget that shows lines of pieces, and draws only those that are on the screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from allaboard.faces.watch.screen_style import screen_style

Piece = tuple[str, str]
"""Text and its style in rich's words."""
Line = Sequence[Piece]


@lru_cache(maxsize=256)
def _style(text: str) -> Style:
    return Style.parse(text)


class LineView(ScrollView, can_focus=True):
    """Lines that are made when they are drawn: thousands of ranks cost as much as those that are seen."""

    DEFAULT_CSS = """
    LineView { height: 1fr; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; }
    """

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self._count = 0
        self._line_at: Callable[[int], Line] = lambda _: ()

    def show(self, count: int, line_at: Callable[[int], Line]) -> None:
        """Show ``count`` lines; ``line_at`` makes the line of a number from 0."""
        self._count, self._line_at = count, line_at
        self.virtual_size = Size(max(1, self.scrollable_content_region.width), count)
        self.refresh()

    def show_text(self, lines: Sequence[str]) -> None:
        """Show lines of plain text."""
        self.show(len(lines), lambda number: ((lines[number], ""),))

    def render_line(self, y: int) -> Strip:
        """Draw one line of the screen."""
        number = y + int(self.scroll_offset.y)
        pieces = self._line_at(number) if number < self._count else ()
        segments = [Segment(text, _style(screen_style(style))) for text, style in pieces]
        width = max(0, self.scrollable_content_region.width)
        return (
            Strip(segments).apply_style(self.rich_style).adjust_cell_length(width, self.rich_style)
        )
