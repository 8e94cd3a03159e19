"""`allaboard watch --web`: serves the page of a run until Ctrl-C, or, for `run --web`, until the run ends."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from allaboard.options.usage_error import UsageError

if TYPE_CHECKING:
    from allaboard.cluster.transport.tls import TlsFiles
    from allaboard.faces.watch.run_source import RunSource
    from allaboard.options.web_options import PagePort

JOURNAL_TIMEOUT_S = 60.0
"""Seconds that a server which `run` has started waits for the run's first line."""
NICENESS = 5
"""Added to the niceness of such a server: the training goes first."""


def serve_page(options: argparse.Namespace) -> int:
    """Serve the page. Raises UsageError if there is nothing to watch, or the page cannot be served."""
    from allaboard.cli.watched_run import find_watched_run, open_target
    from allaboard.options.option_values import read_tls_files
    from allaboard.options.web_options import INHERITED, inherit_page_port, open_page_port

    is_inherited = options.web.startswith(INHERITED)
    tls = read_tls_files(options)
    if is_inherited:
        os.nice(NICENESS)
        page = inherit_page_port(options.web, sys.stdin.readline().strip(), tls is not None)
        _await_journal(Path(options.run))
    target = find_watched_run(options)
    if not is_inherited:
        page = open_page_port(options.web, tls)
    return _serve(open_target(target, options, tls), target.folder, page, tls, is_inherited)


def _serve(
    source: RunSource,
    folder: Path | None,
    page: PagePort,
    tls: TlsFiles | None,
    ends_with_run: bool,
) -> int:
    import asyncio

    from allaboard.cli.standard_output import write_output
    from allaboard.faces.web.serve_run import serve_run
    from allaboard.feed.messages import FeedError
    from allaboard.rules.engine.pages import find_page

    announcement = f"{page.url}\nCtrl-C ends the page, not the run.\n" if page.url else ""
    try:
        asyncio.run(
            serve_run(
                source,
                page.settings(tls),
                find_page,
                folder,
                ends_with_run=ends_with_run,
                on_start=lambda: write_output(announcement),
            )
        )
    except FeedError as error:
        raise UsageError(str(error)) from None
    except KeyboardInterrupt:
        pass
    return 0


def _await_journal(folder: Path) -> None:
    """Wait until the agent, which has just started this process, writes the run's journal."""
    from allaboard.faces.watch.run_folders import is_run_folder

    deadline = time.monotonic() + JOURNAL_TIMEOUT_S
    while not is_run_folder(folder) and time.monotonic() < deadline:
        time.sleep(0.1)
