"""Parts of a log that a heading gives to one process: what a launcher or `tail` puts together. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from allaboard.formats.dumps.log_prefixes import NO_LABEL, Label

_LAUNCHER_HEAD = re.compile(r"-{5,20}Begin global rank (?P<rank>\d{1,7}) STD(?:OUT|ERR)-{5,20}$")
"""Heads what Composer's launcher prints of a rank that has ended (0.10 to 0.32)."""
_LAUNCHER_TAIL = re.compile(r"-{5,20}End global rank \d{1,7} STD(?:OUT|ERR)-{5,20}$")
_FILE_HEAD = re.compile(r"==> (?P<name>[^\n]{1,300}) <==$")
"""Heads the lines of a file in the output of `head` and `tail` of several files."""


_RANK_IN_NAME = re.compile(
    r"(?:^|[^a-z])(?:rank|worker|task)[-_.]?(\d{1,7})(?!\d)|(?:^|/)(\d{1,7})/(?:stdout|stderr)\.log$",
    re.I,
)
"""Matches the rank in the name of a file, or in that of its folder by torchrun."""


def label_sections(labelled_lines: Sequence[tuple[Label, str]]) -> list[tuple[Label, str]]:
    """Return the lines with the process of their heading, where no prefix names one.

    Nothing changes if the headings name no more than one process.
    """
    if not any(line.startswith(("==> ", "-----")) for _, line in labelled_lines):
        return list(labelled_lines)
    sectioned = list(_label(labelled_lines))
    named = {label for label, _ in sectioned} - {label for label, _ in labelled_lines}
    return sectioned if named else list(labelled_lines)


def _label(labelled_lines: Sequence[tuple[Label, str]]) -> Iterator[tuple[Label, str]]:
    section = NO_LABEL
    for label, line in labelled_lines:
        if (head := _LAUNCHER_HEAD.match(line)) is not None:
            section = Label(rank=int(head["rank"]))
        elif (head := _FILE_HEAD.match(line)) is not None:
            ranks = _RANK_IN_NAME.findall(head["name"])
            section = Label(rank=int("".join(ranks[-1]))) if ranks else Label(host=head["name"])
        elif _LAUNCHER_TAIL.match(line) is not None:
            section = NO_LABEL
        else:
            yield (label if label != NO_LABEL else section), line
            continue
        yield NO_LABEL, ""
