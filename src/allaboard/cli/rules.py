"""`allaboard rules`: everything that allaboard can report, one line per rule."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from allaboard.options.command_parser import CommandParser


def add_arguments(parser: CommandParser) -> None:
    """Declare that `rules` takes no arguments."""
    parser.describe(
        "",
        "List every rule: its code, its name, and what it reports.",
        "`allaboard explain CODE` prints the page of one rule. Exit code: 0, or 1 if a rule could not be "
        "loaded.",
    )


def main(arguments: Sequence[str]) -> int:
    """Print a line for each rule, and return the exit code."""
    if arguments:
        from allaboard.options.command_parser import build_parser

        build_parser("rules", add_arguments).parse_arguments(arguments)
    from allaboard.rules.engine.catalogue import load_catalogue

    rules = load_catalogue()
    width = max((len(entry.name) for entry in rules.entries), default=0)
    for entry in rules.entries:
        sys.stdout.write(f"{entry.code}  {entry.name:<{width}}  {entry.title}\n")
    for broken in rules.broken:
        sys.stderr.write(f"not loaded: {broken.stem}: {broken.why}\n")
    return 1 if rules.broken else 0
