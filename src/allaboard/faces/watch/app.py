"""The screen of `allaboard watch`. It renders what `WatchState` has, and computes nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import ContentSwitcher, Footer, Input, OptionList, Static

from allaboard.faces.watch.activity_marks import style_of
from allaboard.faces.watch.detail_pages import (
    host_lines,
    link_lines,
    note_lines,
    server_lines,
    stack_lines,
)
from allaboard.faces.watch.finding_list import FindingList
from allaboard.faces.watch.line_view import Line, LineView
from allaboard.faces.watch.page_screen import PageScreen
from allaboard.faces.watch.rank_grid import grid_lines
from allaboard.faces.watch.rank_rows import (
    FILTERS,
    ORDERS,
    Column,
    cells,
    choose_columns,
    header,
    select_ranks,
)
from allaboard.faces.watch.run_source import SourceChanged
from allaboard.faces.watch.run_summary import concerns, headline, is_well, title
from allaboard.faces.watch.screen_source import Source
from allaboard.faces.watch.screen_style import screen_style
from allaboard.faces.watch.step_sparkline import sparkline
from allaboard.faces.watch.watch_state import WatchState
from allaboard.facts import RankState, RunPhase
from allaboard.feed.messages import FeedError, Message, Refused, Stacks
from allaboard.report.plain_text import clean

PAGES = ("ranks", "stacks", "hosts", "links", "servers", "notes")
MAX_CONCERNS = 4
"""Lines about what deserves a look."""
GRID_SHARE = 4
"""The grid has at most one in so many lines of the screen, and scrolls beyond."""


class WatchApp(App[None]):
    """One run. ``page_of`` returns the page of a rule by its code."""

    CSS = """
    Screen { layout: vertical; overflow: hidden; }
    #title, #headline, #sparkline, #head, #bar { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    #concerns { height: auto; max-height: 4; text-wrap: nowrap; text-overflow: ellipsis; }
    #grid { height: 1; }
    #bar { background: $panel; }
    #head { text-style: bold; }
    #search { display: none; height: 1; border: none; padding: 0; }
    #search.-open { display: block; }
    ContentSwitcher { height: 1fr; min-height: 3; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("s", "stacks", "Stacks"),
        Binding("slash", "search", "Search"),
        Binding("f", "filter", "Filter"),
        Binding("o", "order", "Sort"),
        Binding("c", "copy_fix", "Copy fix"),
        Binding("p", "page", "Rule page"),
        *(
            Binding(str(n + 1), f"show_page('{name}')", name, show=False)
            for n, name in enumerate(PAGES)
        ),
        Binding("escape", "clear_search", "Clear", show=False),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, source: Source, page_of: Callable[[str], str]) -> None:
        super().__init__()
        self.state = WatchState()
        self.failure = ""
        """Why the run cannot be watched; "" if it can."""
        self._source, self._page_of = source, page_of
        self._filter, self._order, self._search = "all", "rank", ""
        self._page = "ranks"
        self._stacks_id = 0
        self._trouble = ""
        self._shown_ranks: list[RankState] = []
        self._columns: tuple[Column, ...] = ()

    def compose(self) -> ComposeResult:
        """Make the widgets, errors before everything else."""
        yield Static(id="title", markup=False)
        yield Static(id="headline", markup=False)
        yield Static(id="concerns", markup=False)
        yield FindingList()
        yield LineView("grid")
        yield Static(id="sparkline", markup=False)
        yield Static(id="bar", markup=False)
        yield Input(id="search", placeholder="rank, name, host, place", compact=True)
        yield Static(id="head", markup=False)
        with ContentSwitcher(initial="ranks"):
            for name in PAGES:
                yield LineView(name)
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Begin to read the feed."""
        self.query_one("#title", Static).update("connecting ...")
        self.query_one("#ranks").focus()
        self.run_worker(self._read(), exclusive=True)

    async def _read(self) -> None:
        try:
            async for message in self._source.messages():
                self.take(message)
            self.state.is_live = False
        except FeedError as error:
            if self.state.snapshot is None:
                self.failure = str(error)
                self.exit()
                return
            self._trouble = str(error)
        self.redraw()

    def take(self, message: Message | SourceChanged) -> None:
        """Take in one message and draw what has changed."""
        is_stacks = isinstance(message, Stacks) and message.id == self._stacks_id
        if is_stacks or (isinstance(message, Refused) and message.id == self._stacks_id):
            self._stacks_id = 0
        self.state.apply(message)
        self.redraw()

    def on_resize(self) -> None:
        """Draw again for the new width."""
        self.call_after_refresh(self.redraw)

    def redraw(self) -> None:
        """Draw everything from the state."""
        snapshot, width = self.state.snapshot, self.size.width
        if snapshot is None:
            return
        self.query_one("#title", Static).update(Text(title(snapshot)))
        style = "bold green" if is_well(snapshot) else "bold red"
        if snapshot.run.phase is RunPhase.ENDED and is_well(snapshot):
            style = "bold"
        self.query_one("#headline", Static).update(
            Text(headline(snapshot), style=screen_style(style))
        )
        lines = concerns(snapshot)[:MAX_CONCERNS]
        if self._trouble:
            lines = [clean(self._trouble), *lines][:MAX_CONCERNS]
        concerns_view = self.query_one("#concerns", Static)
        concerns_view.display = bool(lines)
        concerns_view.update(Text("\n".join(lines), style=screen_style("yellow")))
        self.query_one(FindingList).show(snapshot)
        grid = grid_lines(snapshot, width - 2)
        grid_view = self.query_one("#grid", LineView)
        grid_view.styles.height = max(1, min(len(grid), self.size.height // GRID_SHARE))
        grid_view.show(len(grid), lambda number: grid[number])
        steps = sparkline(self.state.points, width)
        spark = self.query_one("#sparkline", Static)
        spark.display = bool(steps)
        spark.update(Text.assemble(*((text, screen_style(style)) for text, style in steps)))
        self._redraw_page()

    def _redraw_page(self) -> None:
        """Draw the page that is open."""
        snapshot = self.state.snapshot
        if snapshot is None:
            return
        self._redraw_bar()
        view = self.query_one(f"#{self._page}", LineView)
        head = self.query_one("#head", Static)
        head.display = self._page == "ranks"
        if self._page == "ranks":
            self._shown_ranks = select_ranks(
                snapshot.ranks, self._filter, self._order, self._search
            )
            self._columns = choose_columns(snapshot.ranks, self.size.width - 1)
            head.update(Text(header(self._columns)))
            view.show(len(self._shown_ranks), self._rank_line)
            return
        pages: dict[str, Callable[[], list[str]]] = {
            "stacks": lambda: stack_lines(self.state, bool(self._stacks_id)),
            "hosts": lambda: host_lines(snapshot),
            "links": lambda: link_lines(snapshot),
            "servers": lambda: server_lines(snapshot),
            "notes": lambda: note_lines(self.state),
        }
        view.show_text(pages[self._page]())

    def _redraw_bar(self) -> None:
        bar = Text()
        for number, name in enumerate(PAGES, 1):
            bar.append(f" {number} {name} ", style="reverse" if name == self._page else "")
        if self._page == "ranks":
            search = f" · search: {self._search}" if self._search else ""
            bar.append(f"  {self._filter}, by {self._order}{search}")
        snapshot = self.state.snapshot
        is_over = snapshot is not None and bool(snapshot.run.outcome)
        source = "" if self.state.is_live else " · ended" if is_over else " · not live"
        bar.append(source)
        self.query_one("#bar", Static).update(bar)

    def _rank_line(self, number: int) -> Line:
        rank = self._shown_ranks[number]
        pieces = []
        for column, text in zip(self._columns, cells(rank, self._columns), strict=True):
            is_activity = column.title == "does"
            pieces.append((text, style_of(rank, False) if is_activity else ""))
            pieces.append((" ", ""))
        return pieces

    def action_show_page(self, name: str) -> None:
        """Open one of the pages."""
        self._page = name
        self.query_one(ContentSwitcher).current = name
        self._redraw_page()
        self.query_one(f"#{name}").focus()

    def action_stacks(self) -> None:
        """Collect fresh stacks of all ranks, and show them."""
        self._stacks_id = self._source.request_stacks()
        if not self._stacks_id:
            recorded = self._source.recorded_stacks()
            if recorded is not None:
                self.state.stacks, self.state.stacks_refusal = recorded, ""
            else:
                self.state.stacks_refusal = "the run is not live, and its journal has none"
        self.action_show_page("stacks")

    def action_filter(self) -> None:
        """Go to the next filter."""
        self._filter = _next(list(FILTERS), self._filter)
        self.action_show_page("ranks")

    def action_order(self) -> None:
        """Go to the next order."""
        self._order = _next(list(ORDERS), self._order)
        self.action_show_page("ranks")

    def action_search(self) -> None:
        """Open the search."""
        self.action_show_page("ranks")
        search = self.query_one("#search", Input)
        search.add_class("-open")
        search.focus()

    def action_clear_search(self) -> None:
        """Close the search and show all ranks again."""
        search = self.query_one("#search", Input)
        search.value = ""
        search.remove_class("-open")
        self.query_one(f"#{self._page}").focus()

    @on(Input.Changed, "#search")
    def search_changed(self, event: Input.Changed) -> None:
        """Search while it is typed."""
        self._search = event.value
        self._redraw_page()

    @on(Input.Submitted, "#search")
    def search_submitted(self) -> None:
        """Leave the search as it is, and go to the ranks."""
        self.query_one("#search", Input).remove_class("-open")
        self.query_one("#ranks").focus()

    @on(OptionList.OptionSelected, "#findings")
    def finding_selected(self, event: OptionList.OptionSelected) -> None:
        """Unfold or fold the finding."""
        self.query_one(FindingList).toggle(event.option_index)

    def action_copy_fix(self) -> None:
        """Copy the fix of the finding under the cursor."""
        finding = self.query_one(FindingList).selected
        if finding is None or not finding.fix:
            self.notify("no finding with a fix")
            return
        self.copy_to_clipboard(finding.fix)
        self.notify(clean(finding.fix), title="copied", markup=False)

    def action_page(self) -> None:
        """Show the page of the finding's rule."""
        finding = self.query_one(FindingList).selected
        if finding is not None:
            self.push_screen(PageScreen(self._page_of(finding.rule)))

    def on_unmount(self) -> None:
        """Close the feed."""
        self._source.close()


def _next(names: list[str], name: str) -> str:
    return names[(names.index(name) + 1) % len(names)]
