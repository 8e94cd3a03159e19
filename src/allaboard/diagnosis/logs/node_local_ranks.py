"""Files of several nodes that tell the number on the node alone, as torchrun's prefix (``[default0]:``) and
the folders of its ``--log-dir`` do: a rank where there is one node, nobody's where there are two. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

import msgspec

from allaboard.diagnosis.logs.log_demux import OF_TORCHRUN
from allaboard.facts import Exhibit, Glimpse, Testimony

_ENDING = re.compile(r"\.(?:log|txt|out|err|stdout|stderr)$", re.I)
_STREAM = re.compile(r"(?<![a-z])(?:std)?(?:out|err|error|output)(?![a-z])", re.I)
_ATTEMPT = re.compile(r"attempt_\d+")


class Said(msgspec.Struct, frozen=True):
    """What the witnesses said of one part of the file of this ``number``."""

    number: int
    part: Exhibit
    testimony: tuple[Testimony, ...]


def placed(said: Sequence[Said]) -> tuple[list[Said], tuple[str, ...]]:
    """With the ranks that are known, and the files of the nodes of which they are not."""
    firsts: dict[str, set[int]] = {}
    for one in said:
        launched = OF_TORCHRUN.search(one.part.name)
        if launched is not None and one.part.local < 0 <= one.part.rank - int(launched[1]):
            firsts.setdefault(_node(one.part.name), set()).add(one.part.rank - int(launched[1]))
    found = []
    for one in said:
        first = firsts.get(_node(one.part.name), set()) if one.part.local >= 0 else set()
        told = len(first) == 1
        found.append(_renumbered(one, min(first) + one.part.local, -1) if told else one)
    several = _nodes(found)
    if len(several) < 2:
        return found, several
    return [_renumbered(o, -1, o.part.local) if o.part.local >= 0 else o for o in found], several


def shown(file: str) -> str:
    """What a person calls the node: its launcher's log, or the folder of that run."""
    if OF_TORCHRUN.search(file) is None:
        return file
    above = [p for p in PurePosixPath(file).parents[1:] if not _ATTEMPT.fullmatch(p.name)]
    return str(above[0]) if above else file


def _nodes(said: Sequence[Said]) -> tuple[str, ...]:
    """Two names or more where there are several nodes of which no rank is known. What a node wrote to its
    output and what to its errors are two files of one name, and what is in its log is in its folders too.
    One alone is of a job on one node, but where another launcher's log tells the same ranks."""
    logs: dict[tuple[str, str], str] = {}
    folders: dict[tuple[str, str], str] = {}
    known = {
        o.part.rank: o.part.name
        for o in said
        if o.part.local < 0 <= o.part.rank and o.part.labelled
    }
    for one in said:
        name = one.part.name
        if one.part.local < 0:
            continue
        host = one.part.host if one.part.rank < 0 else ""
        found = logs if OF_TORCHRUN.search(name) is None else folders
        found.setdefault((_node(name), host), shown(name))
        other = known.get(one.part.rank, name)
        if found is logs and _node(other) != _node(name):
            logs[_node(other), ""] = other
    several = [f for f in (logs, folders) if len(f) > 1]
    return tuple(name for f in several for name in f.values())


def _node(name: str) -> str:
    return _STREAM.sub("", _ENDING.sub("", shown(name)))


def _renumbered(said: Said, rank: int, local: int) -> Said:
    """With this rank in the place of the number on the node, which stays the ``local`` one where it is known
    no better."""
    part = msgspec.structs.replace(said.part, rank=rank, local=local)
    return Said(said.number, part, tuple(_as(t, said.part, part) for t in said.testimony))


def _as(said: Testimony, old: Exhibit, new: Exhibit) -> Testimony:
    replace = msgspec.structs.replace

    def glimpse(one: Glimpse) -> Glimpse:
        return replace(one, rank=new.rank, guess=new.local) if one.rank == old.rank else one

    return replace(
        said,
        glimpses=tuple(map(glimpse, said.glimpses)),
        overdue=tuple(replace(o, rank=new.rank) if o.rank == old.rank else o for o in said.overdue),
        heard=tuple(
            replace(
                heard,
                speakers=tuple(
                    replace(s, rank=new.rank) if s.rank == old.rank else s for s in heard.speakers
                ),
            )
            for heard in said.heard
        ),
    )
