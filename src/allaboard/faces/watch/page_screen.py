"""The page of a rule, over the screen of a run."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Markdown


class PageScreen(ModalScreen[None]):
    """The page of a rule."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,p", "dismiss", "Back")]
    DEFAULT_CSS = """
    PageScreen { align: center middle; }
    PageScreen VerticalScroll { width: 90%; height: 90%; border: round $primary; background: $surface; }
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """Make the page."""
        with VerticalScroll():
            yield Markdown(self._text, open_links=False)
