"""`allaboard explain CODE`: the page of one rule."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from allaboard.options.usage_error import UsageError

if TYPE_CHECKING:
    from allaboard.options.command_parser import CommandParser


def add_arguments(parser: CommandParser) -> None:
    """Declare the arguments of `explain`."""
    parser.describe(
        "RULE",
        "Explain a finding: what it means, why it matters, and what to do.",
        "Exit code: 0, or 2 if there is no such rule.",
        "allaboard explain HANG001",
        "allaboard explain port-taken",
    )
    parser.add_argument("rule", nargs="?", metavar="RULE", help="code or name of a rule")
    parser.complete_value("rule", rule_codes)


def main(arguments: Sequence[str]) -> int:
    """Print the page of a rule. Raises UsageError if there is no such rule."""
    from allaboard.options.command_parser import build_parser

    rule = build_parser("explain", add_arguments).parse_arguments(arguments).rule
    if rule is None:
        raise UsageError(
            "name a rule, for example: allaboard explain HANG001; `allaboard rules` lists all"
        )
    from allaboard.rules.engine.catalogue import load_catalogue
    from allaboard.rules.engine.pages import render_page

    entry = load_catalogue().find_rule(rule)
    if entry is None:
        raise UsageError(f"no rule {rule!r}{_suggestion(rule)} `allaboard rules` lists all.")
    text = render_page(entry)
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(text))
    else:
        sys.stdout.write(text + "\n")
    return 0


def rule_codes() -> Iterable[str]:
    """Return the code of every rule."""
    from allaboard.rules.engine.catalogue import load_catalogue

    return [entry.code for entry in load_catalogue().entries]


def _suggestion(rule: str) -> str:
    import difflib

    close = difflib.get_close_matches(rule.upper(), list(rule_codes()), n=3, cutoff=0.4)
    return f"; did you mean {' or '.join(close)}?" if close else ";"
