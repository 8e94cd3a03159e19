"""Placement of variables on servers, as the probe noted it in the members that created them."""

from __future__ import annotations

import re

import msgspec

from allaboard.analysis.parameter_servers.task_roles import training_members
from allaboard.facts import JobView

_NOTE_PREFIX = "placed on "
_PLACED_TEXT = re.compile(r"(\d+) variables, (\d+) bytes")


class PlacedVariables(msgspec.Struct, frozen=True):
    """Variables that one task holds."""

    variables: int
    """Number of variables; each part of a partitioned variable counts."""
    bytes: int
    """Size of all of them."""


def find_placement(view: JobView) -> dict[str, PlacedVariables]:
    """Return what each task ("ps:0") holds, as the member that placed the most bytes noted it.

    The other members may have built only a part of the graph.
    """
    most_placed: dict[str, PlacedVariables] = {}
    for trainer in training_members(view):
        if not trainer.notes:
            continue
        placed = {
            key.removeprefix(_NOTE_PREFIX): PlacedVariables(int(match[1]), int(match[2]))
            for key, text in trainer.notes.items()
            if key.startswith(_NOTE_PREFIX) and (match := _PLACED_TEXT.fullmatch(text))
        }
        if sum(h.bytes for h in placed.values()) > sum(h.bytes for h in most_placed.values()):
            most_placed = placed
    return most_placed
