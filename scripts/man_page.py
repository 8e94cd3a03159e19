"""Writes the manual page of allaboard from the parsers of its commands: man_page.py [--check] FILE.

The reference pages have the same source, so they are written too, into the folder `reference` beside that of
FILE, if there is one. With --check nothing is written, and it fails if a file is not what it would write.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from allaboard import __version__
from allaboard.cli.commands import COMMANDS
from allaboard.cli.top_level import DESCRIPTION, EXAMPLES
from allaboard.options.command_parser import CommandParser, build_parser

sys.path.insert(0, str(Path(__file__).parent))
from reference_pages import stale_pages, write_pages

VARIABLES = {
    "ALLABOARD_COORDINATOR": "Where the agents of the hosts meet, as --coordinator.",
    "ALLABOARD_SECRET": "The job's secret, as --secret-file.",
    "ALLABOARD_TLS_CERT, ALLABOARD_TLS_KEY, ALLABOARD_TLS_CA": "Files for TLS between hosts, as --tls-cert, "
    "--tls-key and --tls-ca.",
    "NO_COLOR": "If set, nothing is coloured.",
    "COLUMNS": "The width of the output, in place of the terminal's.",
}
FILES = {
    ".allaboard/JOB/": "Logs, journal and report of a run, unless --run-dir names another folder."
}


def escape(text: str) -> str:
    """Return the text with what roff would take for its own escaped."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("'", "\\(aq")
    text = "".join(c if c.isascii() else f"\\[u{ord(c):04X}]" for c in text)
    return "\n".join(f"\\&{line}" if line.startswith(".") else line for line in text.split("\n"))


def paragraphs(text: str) -> str:
    return "\n.PP\n".join(escape(" ".join(part.split())) for part in text.split("\n\n"))


def arguments(parser: CommandParser) -> Iterator[str]:
    """The arguments of a command, one by one, without hidden ones."""
    for action in parser.declared_arguments():
        if action.help == argparse.SUPPRESS or "--help" in action.option_strings:
            continue
        value = ""
        if action.nargs != 0 or not action.option_strings:
            value = str(action.metavar or "|".join(action.choices or [action.dest.upper()]))
        names = ", ".join(f"\\fB{escape(name)}\\fR" for name in action.option_strings)
        yield f".TP\n{names}{' ' if names and value else ''}\\fI{escape(value)}\\fR".removesuffix(
            "\\fI\\fR"
        )
        yield escape((action.help or "").replace("%%", "%"))


def command(name: str) -> Iterator[str]:
    module = importlib.import_module(f"allaboard.cli.{name}")
    parser = build_parser(name, module.add_arguments)
    yield f".SS {name}"
    for form in map(str.strip, (parser.usage or "").splitlines()):
        yield f"\\fB{escape(f'allaboard {name}')}\\fR{escape(form.removeprefix(f'allaboard {name}'))}\n.br"
    yield f".PP\n{paragraphs(parser.description or '')}"
    yield from arguments(parser)
    if parser.epilog:
        yield f".PP\n{paragraphs(parser.epilog)}"
    if parser.examples:
        yield ".PP\nExamples:\n.PP\n.nf\n.RS"
        yield escape("\n".join(parser.examples))
        yield ".RE\n.fi"


def described(title: str, entries: dict[str, str]) -> Iterator[str]:
    yield f".SH {title}"
    for name, text in entries.items():
        yield f".TP\n\\fB{escape(name)}\\fR\n{escape(text)}"


def man_page() -> str:
    """Return the page for all commands."""
    lines = [
        ".\\\" Made from the command line's parsers by scripts/man_page.py",
        f'.TH ALLABOARD 1 "" "allaboard {__version__}" "User Commands"',
        ".SH NAME",
        "allaboard \\- start, watch and diagnose distributed training",
        ".SH SYNOPSIS",
        "\\fBallaboard\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR] ...\n.br",
        "\\fBallaboard \\-\\-version\\fR\n.br",
        "\\fBallaboard\\fR [\\fICOMMAND\\fR] \\fB\\-\\-help\\fR",
        ".SH DESCRIPTION",
        paragraphs(DESCRIPTION),
        ".SH COMMANDS",
    ]
    for name in COMMANDS:
        lines += command(name)
    lines += described("ENVIRONMENT", VARIABLES)
    lines += described("FILES", FILES)
    lines.append(".SH EXAMPLES")
    for example in EXAMPLES:
        typed, text = re.split(r"  +", example)
        lines.append(f".TP\n\\fB{escape(typed)}\\fR\n{escape(text)}")
    return "\n".join(lines) + "\n"


def main(words: list[str]) -> int:
    check = "--check" in words
    file = Path(next(word for word in words if not word.startswith("-")))
    text = man_page()
    reference = file.parents[1] / "reference"
    if not check:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        if reference.is_dir():
            write_pages(reference)
        return 0
    stale = [] if file.exists() and file.read_text() == text else [str(file)]
    if reference.is_dir():
        stale += [str(reference / name) for name in stale_pages(reference)]
    if stale:
        print(f"stale: {', '.join(stale)}; run: make docs", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
