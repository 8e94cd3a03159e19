"""Files of several nodes whose lines tell the number on the node alone (torchrun's ``[default0]:``): such a
number is a rank where there is one node, and nobody's where there are two. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from allaboard.facts import Exhibit, Glimpse, Testimony

_ENDING = re.compile(r"\.(?:log|txt|out|err|stdout|stderr)$", re.I)
_STREAM = re.compile(r"(?<![a-z])(?:std)?(?:out|err|error|output)(?![a-z])", re.I)


class Said(msgspec.Struct, frozen=True):
    """What the witnesses said of one part of a file."""

    part: Exhibit
    testimony: tuple[Testimony, ...]


def nodes(said: Sequence[Said]) -> tuple[str, ...]:
    """The files whose ranks are no more than numbers on their node, one of each node: what a node wrote to
    its output and what to its errors are two files of one name. One alone is of a job on one node, but
    where another launcher's log tells the same ranks."""
    found: dict[tuple[str, str], str] = {}
    known: dict[int, str] = {}
    for one in said:
        if one.part.local >= 0:
            host = one.part.host if one.part.rank < 0 else ""
            found.setdefault((_node(one.part.name), host), one.part.name)
        elif one.part.labelled and one.part.rank >= 0:
            known[one.part.rank] = one.part.name
    names = dict.fromkeys(found.values())
    for one in said:
        other = known.get(one.part.rank, one.part.name)
        if one.part.local >= 0 and _node(other) != _node(one.part.name):
            names[other] = None
    return tuple(names) if len(names) > 1 or len(found) < 2 else (*names, *names)


def _node(name: str) -> str:
    return _STREAM.sub("", _ENDING.sub("", name))


def nameless(said: Said) -> Said:
    """Without the ranks that were numbers on a node."""
    if said.part.local < 0:
        return said
    part = msgspec.structs.replace(said.part, rank=-1)
    return Said(part, tuple(_nameless(t, said.part) for t in said.testimony))


def _nameless(said: Testimony, part: Exhibit) -> Testimony:
    replace = msgspec.structs.replace

    def unknown(one: Glimpse) -> Glimpse:
        return replace(one, rank=-1, guess=part.local) if one.rank == part.rank else one

    return replace(
        said,
        glimpses=tuple(map(unknown, said.glimpses)),
        overdue=tuple(replace(o, rank=-1) if o.rank == part.rank else o for o in said.overdue),
        heard=tuple(
            replace(
                heard,
                speakers=tuple(
                    replace(s, rank=-1) if s.rank == part.rank else s for s in heard.speakers
                ),
            )
            for heard in said.heard
        ),
    )
