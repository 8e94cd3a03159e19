"""Which variables are on which server, as the probe noted it in those who made them."""

from __future__ import annotations

import re

import msgspec

from allaboard.analysis.parameter_servers.parameter_servers import trainers
from allaboard.facts import JobView

_KEY = "placed on "
_TEXT = re.compile(r"(\d+) variables, (\d+) bytes")


class Held(msgspec.Struct, frozen=True):
    """What one task holds: how many variables (parts of one count each), and their bytes."""

    variables: int
    bytes: int


def placement(view: JobView) -> dict[str, Held]:
    """Task (``ps:0``) -> what it holds; of the member that placed the most, since a part of the graph may
    be all that the others built."""
    best: dict[str, Held] = {}
    for one in trainers(view):
        if not one.notes:
            continue
        found = {
            key.removeprefix(_KEY): Held(int(match[1]), int(match[2]))
            for key, text in one.notes.items()
            if key.startswith(_KEY) and (match := _TEXT.fullmatch(text))
        }
        if sum(h.bytes for h in found.values()) > sum(h.bytes for h in best.values()):
            best = found
    return best
