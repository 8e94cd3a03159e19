"""Output of `py-spy dump`, as text or with `--json`: of one process a file, or of several in a row."""

from __future__ import annotations

import re

from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Glimpse, Place, Stack, Testimony
from allaboard.formats.dumps.log_prefixes import without_torch_labels
from allaboard.formats.dumps.process_roles import process_role
from allaboard.formats.dumps.rank_hints import rank_from_command, ranks_from_variables
from allaboard.formats.dumps.thread_dumps.pyspy import (
    ProcessDump,
    parse_json_dumps,
    parse_text_dumps,
)

MAX_AMBIGUOUS_RANK = 1000
"""Numbers below this may be a rank or a pid."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = without_torch_labels(exhibit.text)
    dumps = parse_text_dumps(text) or parse_json_dumps(text)
    if not dumps:
        return None
    roles = [process_role(dump.command, dump.frames) for dump in dumps]
    ranks = ranks_from_variables(text, [dump.begin for dump in dumps])
    rank_by_pid = {
        dump.pid: rank for dump, role, rank in zip(dumps, roles, ranks, strict=True) if not role
    }
    if -1 in rank_by_pid.values() or len(set(rank_by_pid.values())) < len(rank_by_pid):
        ranks = [-1] * len(dumps)  # one of them printed it, or a shell: whose it is, is not known
    rank_from_name = _rank_from_name(
        exhibit, [dump for dump, role in zip(dumps, roles, strict=True) if not role]
    )
    glimpses = []
    line = counted_up_to = 0
    for dump, role, rank in zip(dumps, roles, ranks, strict=True):
        line, counted_up_to = line + text.count("\n", counted_up_to, dump.begin), dump.begin
        place = exhibit.place_of_line(line)
        glimpses.append(
            _glimpse(
                exhibit, place, dump, role, rank if rank >= 0 else rank_from_name.get(dump.pid, -1)
            )
        )
    return Testimony(glimpses=tuple(glimpses))


def _rank_from_name(exhibit: Exhibit, candidates: list[ProcessDump]) -> dict[int, int]:
    """Return the rank in a file's name for the one process of it that is the rank, by pid.

    That process is the one that started the others. A number that is a pid is no rank, unless the file is
    called ``rank``: containers have pids as low as ranks. A heading or a prefix states one.
    """
    pids = {one.pid for one in candidates}
    roots = {one.pid for one in candidates if not one.parent or one.parent not in pids}
    names_a_rank = re.search(rf"rank[-_.]?0*{exhibit.rank}(?!\d)", exhibit.name, re.IGNORECASE)
    is_stated = bool(exhibit.numbers) or (names_a_rank and exhibit.rank < MAX_AMBIGUOUS_RANK)
    if len(roots) != 1 or (exhibit.rank in pids - {0} and not is_stated):
        return {}
    return dict.fromkeys(roots, exhibit.rank)


def _glimpse(exhibit: Exhibit, place: Place, dump: ProcessDump, role: str, rank: int) -> Glimpse:
    # A variable of the program is the rank itself; an argument may be about something else.
    guess = dump.rank if dump.rank >= 0 else rank_from_command(dump.command)
    guess = guess if guess >= 0 or role else exhibit.local
    return Glimpse(
        origin=place,
        rank=-1 if role else rank,
        pid=dump.pid,
        host=exhibit.host,
        stack=Stack(frames=dump.frames, taken_at=0.0, by="py-spy") if dump.frames else None,
        guess=guess,
        command=dump.command,
        parent=dump.parent,
        role=role,
    )


READER = LogReader(read=read_log)
