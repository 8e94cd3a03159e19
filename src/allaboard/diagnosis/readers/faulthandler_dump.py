"""Dumps of Python's faulthandler: at a signal, after a time, or when native code crashed."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator

from allaboard.analysis.log_messages import speaker_rank
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Exit, Glimpse, Stack, Testimony
from allaboard.formats.dumps.log_prefixes import without_torch_labels
from allaboard.formats.dumps.process_roles import process_role
from allaboard.formats.dumps.rank_hints import ranks_from_variables
from allaboard.formats.dumps.thread_dumps.faulthandler import (
    Crash,
    find_crash,
    find_dumps,
    last_dumps,
)

_SIGNALS = {
    "Segmentation fault": signal.SIGSEGV,
    "Aborted": signal.SIGABRT,
    "Bus error": signal.SIGBUS,
    "Illegal instruction": signal.SIGILL,
    "Floating-point exception": signal.SIGFPE,
    "Floating point exception": signal.SIGFPE,
}
_RANK_HEAD = re.compile(r"^=== Rank (\d{1,7}): http://\S* ===$", re.MULTILINE)
"""How PyTorch's debug server heads the stacks of a rank."""
MAX_VARIABLE_DISTANCE = 400
"""Characters above a dump within which a printed variable belongs to its process."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = without_torch_labels(exhibit.text)
    if sections := _rank_sections(exhibit, text):
        dumps = [g for section in sections for g in _requested_dumps(section, section.text)]
        return Testimony(glimpses=tuple(dumps)) if dumps else None
    crash = find_crash(text)
    glimpses = (
        tuple(_requested_dumps(exhibit, text))
        if crash is None
        else _fatal_error_glimpse(exhibit, text, crash)
    )
    if not glimpses and crash is None and any(True for _ in find_dumps(text)):
        torn = "a stack dump that is torn, or that another process wrote over: give each a file of its own"
        return Testimony(notes=(f"{exhibit.name}: {torn}",))
    return Testimony(glimpses=glimpses) if glimpses else None


def _rank_sections(exhibit: Exhibit, text: str) -> list[Exhibit]:
    """Return the part of each rank of what PyTorch's debug server wrote of all ranks; [] of any other file.

    Of several dumps in the file the last one counts.
    """
    heads = list(_RANK_HEAD.finditer(text))
    ends = [*(h.start() for h in heads[1:]), len(text)][: len(heads)]
    sections: dict[int, Exhibit] = {}
    for head, end in zip(heads, ends, strict=True):
        lines_before = text.count("\n", 0, head.end())
        part = text[head.end() : end]
        sections[int(head[1])] = Exhibit(
            name=exhibit.name,
            data=part.encode(),
            rank=int(head[1]),
            cut=exhibit.cut,
            numbers=tuple(range(lines_before + 1, lines_before + part.count("\n") + 2)),
        )
    return list(sections.values())


def _fatal_error_glimpse(exhibit: Exhibit, text: str, crash: Crash) -> tuple[Glimpse, ...]:
    place = exhibit.place_of_line(text.count("\n", 0, crash.begin))
    rank = speaker_rank(text[crash.begin : text.find("\n", crash.begin)], exhibit.rank)
    number = _SIGNALS.get(crash.reason)
    if number is not None:
        process_end = Exit(ended_at=0.0, signal=int(number), last_line=crash.line)
        return (Glimpse(origin=place, rank=rank, pid=exhibit.pid, exit=process_end),)
    if not crash.frames:
        return ()
    stack = Stack(frames=crash.frames, taken_at=0.0, by="faulthandler")
    return (Glimpse(origin=place, rank=rank, pid=exhibit.pid, stack=stack),)


def _requested_dumps(exhibit: Exhibit, text: str) -> Iterator[Glimpse]:
    """Yield a glimpse of each process that dumped its stacks into this file on request.

    Of several dumps in the file of one rank the last one counts: a process that was started again goes on
    writing to the same file.
    """
    all_dumps = last_dumps(text)
    roles = [process_role("", dump.frames) for dump in all_dumps]
    # Just above it alone: in the log of several, one may have printed it long before.
    ranks = [
        ranks_from_variables(text[max(0, d.begin - MAX_VARIABLE_DISTANCE) : d.begin], [0])[0]
        for d in all_dumps
    ]
    candidates = [n for n, role in enumerate(roles) if not role]
    for number, (dump, role, rank) in enumerate(zip(all_dumps, roles, ranks, strict=True)):
        is_own_dump = candidates[-1:] == [number] if exhibit.rank >= 0 else len(candidates) == 1
        if not role and not is_own_dump and exhibit.rank >= 0:
            continue
        end = text.find("\n", dump.begin)
        fallback_rank = speaker_rank(text[dump.begin : end], exhibit.rank) if not role else -1
        yield Glimpse(
            origin=exhibit.place_of_line(text.count("\n", 0, dump.begin)),
            rank=rank if rank >= 0 and not role else fallback_rank,
            pid=exhibit.pid if len(all_dumps) == 1 else 0,
            host=exhibit.host,
            guess=exhibit.local if not role else -1,
            stack=Stack(frames=dump.frames, taken_at=0.0, by="faulthandler"),
            role=role,
        )


READER = LogReader(read=read_log)
