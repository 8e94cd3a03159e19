"""What `py-spy dump` printed, as text or with `--json`: of one process a file, or of several in a row."""

from __future__ import annotations

import re

from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Glimpse, Place, Stack, Testimony
from allaboard.formats.dumps.process_roles import role
from allaboard.formats.dumps.pyspy import Dumped, of_json, of_text
from allaboard.formats.dumps.rank_hints import by_command, by_variables

LOW = 1000
"""Below it, a number may be a rank and a pid."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    found = of_text(text) or of_json(text)
    if not found:
        return None
    roles = [role(one.command, one.frames) for one in found]
    told = by_variables(text, [one.begin for one in found])
    maybe = {one.pid: rank for one, what, rank in zip(found, roles, told, strict=True) if not what}
    if -1 in maybe.values() or len(set(maybe.values())) < len(maybe):
        told = [-1] * len(found)  # one of them printed it, or a shell: whose it is, is not known
    named = _named(exhibit, [one for one, what in zip(found, roles, strict=True) if not what])
    glimpses = []
    line = before = 0
    for one, what, rank in zip(found, roles, told, strict=True):
        line, before = line + text.count("\n", before, one.begin), one.begin
        place = exhibit.place(line)
        glimpses.append(_glimpse(place, one, what, rank if rank >= 0 else named.get(one.pid, -1)))
    return Testimony(glimpses=tuple(glimpses))


def _named(exhibit: Exhibit, maybe: list[Dumped]) -> dict[int, int]:
    """The name of a file is that of the one rank in it, by pid: of the one that started the others. A number
    that is a pid is no rank, but where the file is called a rank: the pids of containers are as low."""
    pids = {one.pid for one in maybe}
    first = {one.pid for one in maybe if one.parent not in pids}
    called = re.search(rf"rank[-_.]?0*{exhibit.rank}(?!\d)", exhibit.name, re.IGNORECASE)
    if len(first) != 1 or (exhibit.rank in pids and not (called and exhibit.rank < LOW)):
        return {}
    return dict.fromkeys(first, exhibit.rank)


def _glimpse(place: Place, one: Dumped, what: str, rank: int) -> Glimpse:
    argument = by_command(one.command)
    return Glimpse(
        origin=place,
        rank=-1 if what else rank,
        pid=one.pid,
        stack=Stack(frames=one.frames, taken_at=0.0, by="py-spy") if one.frames else None,
        guess=argument if argument >= 0 else one.rank,
        command=one.command,
        parent=one.parent,
        role=what,
    )


READER = LogReader(read=read_log)
