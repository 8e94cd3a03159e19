"""`allaboard watch`: look at a run while it lasts, or afterwards."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from allaboard.options.metrics_options import add_metrics_options
from allaboard.options.option_values import add_tls_options, add_web_option
from allaboard.options.usage_error import UsageError

if TYPE_CHECKING:
    from allaboard.faces.watch.run_source import RunSource
    from allaboard.options.command_parser import CommandParser

STDOUT = 1
NOT_WELL_EXIT_CODE = 1
"""Exit code of --once if an error is open, the job stands still, or it has failed."""


def add_arguments(parser: CommandParser) -> None:
    """Declare the arguments of `watch`."""
    parser.describe(
        "[RUN|HOST:PORT]",
        "Look at a run in the terminal: whether it moves, who holds it up, since when. RUN is a run folder "
        "(default: the newest run of this folder); HOST:PORT is what the run was given as --feed.",
        "Exit code: 0, or with --once 1 if an error is open, the job stands still or has failed; 2 if there "
        "is nothing to watch.",
        "allaboard watch",
        "allaboard watch .allaboard/20261125-205659-9ed787",
        "allaboard watch node0:8700 --secret-file job.secret",
        "allaboard watch --once --format json",
        "allaboard watch --web",
    )
    add = parser.add_argument
    add("run", nargs="?", default="", metavar="RUN|HOST:PORT", help="what to watch")
    add("--once", action="store_true", help="print one look, and exit")
    add(
        "--format",
        default="text",
        choices=("text", "json"),
        help="with --once: text for people, or the whole snapshot as JSON",
    )
    add("--lines", action="store_true", help="print a line for every change, instead of a screen")
    add_web_option(add, "serve a page that shows the run, instead of a screen,")
    add_metrics_options(add)
    add("--secret-file", metavar="FILE", type=Path, help="the job's secret, for HOST:PORT")
    add_tls_options(parser)


def main(arguments: Sequence[str]) -> int:
    """Show a run. Raises UsageError if there is nothing to watch."""
    from allaboard.cli.watched_run import open_run_source
    from allaboard.feed.messages import FeedError
    from allaboard.options.command_parser import build_parser

    options = build_parser("watch", add_arguments).parse_arguments(arguments)
    if options.format == "json" and not options.once:
        raise UsageError(
            "--format json prints one look; write: allaboard watch --once --format json"
        )
    if options.web is not None:
        if options.once or options.lines:
            raise UsageError("--web shows a page; leave out --once and --lines")
        from allaboard.cli.watch_page import serve_page

        return serve_page(options)
    if options.metrics or options.metrics_file is not None:
        if options.once or options.lines:
            raise UsageError(
                "--metrics reports for as long as the run lasts; leave out --once and --lines"
            )
        from allaboard.cli.watch_metrics import report_metrics

        return report_metrics(options)
    source = open_run_source(options)
    try:
        if options.once:
            return _print_once(source, options.format)
        if options.lines or not _has_screen():
            return _print_lines(source)
        return _show_screen(source)
    except FeedError as error:
        raise UsageError(str(error)) from None


def _print_once(source: RunSource, output_format: str) -> int:
    import asyncio

    from allaboard.cli.standard_output import write_output
    from allaboard.faces.watch.once import snapshot_json, snapshot_text
    from allaboard.faces.watch.run_source import fetch_snapshot
    from allaboard.faces.watch.run_summary import is_well
    from allaboard.report.plain_text import output_width, shows_colours

    snapshot = asyncio.run(fetch_snapshot(source))
    if output_format == "json":
        write_output(snapshot_json(snapshot))
    else:
        colour = shows_colours(sys.stdout)
        write_output(snapshot_text(snapshot, output_width(STDOUT), colour))
    return 0 if is_well(snapshot) else NOT_WELL_EXIT_CODE


def _print_lines(source: RunSource) -> int:
    import asyncio

    from allaboard.cli.standard_output import write_output
    from allaboard.faces.watch.line_by_line import follow_line_by_line
    from allaboard.report.plain_text import output_width

    asyncio.run(
        follow_line_by_line(source, lambda line: write_output(line + "\n"), output_width(STDOUT))
    )
    return 0


def _has_screen() -> bool:
    """Return True if a screen can be drawn: textual draws on stderr, and reads keys from stdin."""
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()
    return is_terminal and os.environ.get("TERM", "dumb") not in ("dumb", "")


def _show_screen(source: RunSource) -> int:
    from importlib.util import find_spec

    if find_spec("textual") is None:
        raise UsageError(
            "the screen needs textual, which is not installed: pip install 'allaboard[watch]'; without it: "
            "allaboard watch --lines, or --once"
        )
    from allaboard.faces.watch.app import WatchApp
    from allaboard.rules.engine.pages import find_page

    app = WatchApp(source, find_page)
    app.run()
    if app.failure:
        raise UsageError(app.failure)
    return 0
