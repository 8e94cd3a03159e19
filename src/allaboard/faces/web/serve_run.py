"""Serves the page of one run: passes on what the feed says, until the run or the person ends it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Protocol

from allaboard.faces.watch.run_source import SourceChanged
from allaboard.faces.web.page_server import PageServer, PageSettings
from allaboard.faces.web.page_state import PageState
from allaboard.feed.messages import FeedError, Message, Stacks
from allaboard.feed.series import read_series

LAST_LOOK_S = 5.0
"""Seconds that pages get to read the last messages when the server ends with its run."""
NO_STACKS = "nobody can be asked for stacks: the run has ended, or its agent cannot be reached"


class PageSource(Protocol):
    """The part of `run_source.RunSource` that the server uses."""

    def messages(self) -> AsyncIterator[Message | SourceChanged]:
        """Yield messages until the run has ended."""

    def request_stacks(self) -> int:
        """Ask for fresh stacks; return the id of the answer, or 0 if nobody can be asked."""

    def recorded_stacks(self) -> Stacks | None:
        """Return the stacks of the journal's last picture; None if no journal is read."""

    def close(self) -> None:
        """Close the feed."""


async def serve_run(
    source: PageSource,
    settings: PageSettings,
    page_of: Callable[[str], str],
    series_folder: Path | None = None,
    *,
    ends_with_run: bool = False,
    on_start: Callable[[], None] = lambda: None,
) -> None:
    """Serve the page until the task is cancelled, or with ``ends_with_run`` until the run has ended.

    ``series_folder`` is the run folder if it can be read; ``on_start`` is called when the server listens.
    Raises FeedError if the run cannot be watched at all.
    """
    state = PageState(page_of)
    if series_folder is not None:
        await asyncio.to_thread(state.add_series, read_series(series_folder))

    def request_stacks() -> None:
        if not source.request_stacks():
            server.notify(state.set_stacks(source.recorded_stacks(), NO_STACKS))

    server = PageServer(state, settings, request_stacks)
    state.set_up()
    await server.start()
    on_start()
    notice = "The run has ended."
    try:
        try:
            async for message in source.messages():
                server.notify(state.apply(message))
        except FeedError as error:
            if state.snapshot is None:
                raise
            notice = str(error)
        if ends_with_run:
            notice += " This page stays as it is; to open it again: allaboard watch --web"
        state.set_up(notice)
        server.notify(("source",))
        if not ends_with_run:
            await asyncio.Event().wait()
    finally:
        source.close()
        await server.close(LAST_LOOK_S if ends_with_run else 0.5)
