"""A command of a script as it is written, for a corrected line to paste."""

from __future__ import annotations

import re

MAX_SHOWN_LENGTH = 240
"""Characters of a command that are shown; longer ones are abbreviated by whoever shows them."""


def command_text(text: str, line: int) -> str:
    """Return the command that begins in this line (from 1), with its continuation lines joined; "" if it is
    too long to be shown."""
    lines = text.split("\n")
    if not 0 < line <= len(lines):
        return ""
    command = lines[line - 1]
    while command.endswith("\\") and line < len(lines) and len(command) <= 4 * MAX_SHOWN_LENGTH:
        command = command[:-1].rstrip() + " " + lines[line].strip()
        line += 1
    command = command.strip()
    return command if len(command) <= MAX_SHOWN_LENGTH else ""


def with_late_variable(command: str, name: str) -> str:
    """Return the command with the variable expanded by the shell of each task, not by the script's own; "" if
    its quotes are too involved for that.

    In the double quotes of ``bash -c "…"`` a backslash keeps the outer shell away; other commands get a
    ``bash -c '…'`` around the program.
    """
    variable = rf"(?<!\\)\$(?:{name}\b|\{{{name}\}})"
    if not re.search(variable, command):
        return ""
    if re.search(r"\b(?:ba)?sh\s+-\w*c\s+\"", command):
        return re.sub(variable, rf"\\${name}", command)
    match = re.search(
        r"\bsrun\b(?:\s+-\S+(?:\s+(?![\w./-]*(?:python|torchrun|accelerate))[\w:,./-]+)?)*?\s+"
        r"(?P<program>(?:\S*/)?(?:python[0-9.]*|torchrun|accelerate)\s.*)\Z",
        command,
    )
    if match is None or "'" in match["program"]:
        return ""
    return f"{command[: match.start('program')]}bash -c '{match['program']}'"
