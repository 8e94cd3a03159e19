"""Variables of a shell script that nobody sets, because their names are not quite those of Slurm."""

from __future__ import annotations

import re
from collections.abc import Iterator

from allaboard.facts import Origin, Problem
from allaboard.facts.configuration.slurm_variables import meant_variable

_USE = re.compile(r"(?<!\\)\$\{?(?P<name>S[LRUM]{3,4}_[A-Z0-9_]+)(?P<default>[:\-+?=%#/\[]*)")
_SHOWS = re.compile(r"\s*(?:echo|printf|#)")


def misspelt_variables(text: str, file: str) -> Iterator[Problem]:
    """Yield a problem for the first use of each variable that is none of Slurm's, and almost is one.

    What the script sets itself, what has a default, and what is only printed is left alone.
    """
    reported_names: set[str] = set()
    for number, line in enumerate(text.split("\n"), 1):
        if "_" not in line or _SHOWS.match(line):
            continue
        for match in _USE.finditer(line):
            name = match["name"]
            meant = meant_variable(name) if name not in reported_names else ""
            if not meant or match["default"] or _is_set(text, name):
                continue
            reported_names.add(name)
            yield Problem(
                kind="misspelt",
                message=f"Slurm sets no {name}: it is empty here; the variable is {meant}",
                observed=line.strip()[:80],
                correction=f"${meant}",
                origin=Origin(variable=name, file=file, line=number, column=match.start() + 1),
            )


def _is_set(text: str, name: str) -> bool:
    return (
        re.search(rf"(?<![$\w{{]){name}\+?=|(?:read|for|env)\s[^\n;|]*\b{name}\b", text) is not None
    )
