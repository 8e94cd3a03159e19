"""Environments as text files: ``NAME=VALUE`` a line; a line that begins with a blank continues the
value."""

from __future__ import annotations

from pathlib import Path


def read_environment(path: Path) -> dict[str, str]:
    """Return the variables of an ``.env`` file of the corpus."""
    variables: dict[str, str] = {}
    name = ""
    for line in path.read_text().splitlines():
        if line.startswith(" ") and name:
            variables[name] += f"\n{line[1:]}"
        elif line:
            name, _, text = line.partition("=")
            variables[name] = text
    return variables
