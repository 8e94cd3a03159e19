"""Every witness read_log every exhibit; what they say is brought together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

import msgspec

from allaboard.analysis.failures.post_traceback_output import (
    MAX_BUFFERED_CHARS,
    launcher_reports_failure,
    training_over_line,
)
from allaboard.contracts import LogReader
from allaboard.diagnosis import readers
from allaboard.diagnosis.logs.group_name_collisions import told_apart
from allaboard.diagnosis.logs.log_demux import owned, streams
from allaboard.diagnosis.logs.node_local_ranks import Said, placed
from allaboard.diagnosis.logs.traceback_attribution import adopted
from allaboard.facts import Exhibit, Glimpse, Heard, Overdue, Recorded, Testimony
from allaboard.plugins import Broken, plugins


class Record(msgspec.Struct):
    """All testimony: ``logs`` are the ranks of the exhibits that were read, ``read`` their names;
    ``labelled`` the ranks that a launcher's prefix named in them; ``nodes`` the files of which it told the
    numbers on a node alone; ``well`` the files that end with the words that the training is over."""

    heard: list[Heard] = []
    glimpses: list[Glimpse] = []
    recorded: list[Recorded] = []
    overdue: list[Overdue] = []
    groups: dict[str, tuple[int, ...]] = {}
    logs: list[int] = []
    read: list[str] = []
    labelled: set[int] = set()
    nodes: tuple[str, ...] = ()
    well: dict[str, str] = {}
    failed: bool = False
    """Whether a launcher, or whoever started a process, tells that it failed."""
    notes: list[str] = []
    silent: int = 0
    """Exhibits in which no witness knew anything."""


def take(exhibits: Iterable[Exhibit], notes: list[str]) -> Record:
    """What all witnesses say of these exhibits. A witness that fails becomes a note."""
    record = Record(notes=notes)
    known, broken = _witnesses()
    record.notes += [f"witness {b.stem} could not be loaded: {b.why}" for b in broken]
    said: list[Said] = []
    for number, exhibit in enumerate(map(owned, exhibits)):
        record.read.append(exhibit.name)
        parts = streams(exhibit)
        spoke = [Said(number, part, _ask(part, known, record)) for part in parts]
        record.logs.append(_whose(exhibit, spoke))
        record.failed |= launcher_reports_failure(exhibit.text)
        if (last := training_over_line(exhibit.text)) and _nobody_s(exhibit, parts, last):
            record.well[exhibit.name] = last
        record.silent += not any(one.testimony for one in spoke)
        said += [msgspec.structs.replace(one, part=_empty(one.part)) for one in spoke]
    found, record.nodes = placed(said)
    for before, one in zip(said, found, strict=True):
        if before.part.local >= 0 and record.logs[one.number] >= 0:
            record.logs[one.number] = one.part.rank
        if one.part.labelled and one.part.rank >= 0:
            record.labelled.add(one.part.rank)
        for testimony in one.testimony:
            _add(record, testimony)
    record.failed |= any(map(_told_end, record.glimpses))
    record.glimpses = adopted(record.glimpses)
    return record


def _whose(exhibit: Exhibit, spoke: Iterable[Said]) -> int:
    """The rank whose file it is: not the number in its name where that is a pid, or of a node, or where what
    is in it is of others."""
    dumped = [g for one in spoke for t in one.testimony for g in t.glimpses if g.stack is not None]
    own = not dumped or any(g.rank == exhibit.rank for g in dumped)
    return (
        exhibit.rank
        if own and not any(o.part.local >= 0 and o.part.labelled for o in spoke)
        else -1
    )


def _told_end(one: Glimpse) -> bool:
    end = one.exit
    failed = (
        end is not None and not end.ours and (end.signal is not None or end.code not in (0, None))
    )
    return failed and one.raised is None


def _nobody_s(exhibit: Exhibit, parts: Sequence[Exhibit], last: str) -> bool:
    """Whether no launcher or collector names whose line the last is: it would be of that one alone."""
    return any(
        p.rank == exhibit.rank
        and not p.host
        and p.local < 0
        and last in p.text[-MAX_BUFFERED_CHARS:]
        for p in parts
    )


def _empty(part: Exhibit) -> Exhibit:
    """Without what was read already: all files together do not fit into memory."""
    return msgspec.structs.replace(part, data=b"", numbers=())


def _ask(
    exhibit: Exhibit, known: Iterable[tuple[str, LogReader]], record: Record
) -> tuple[Testimony, ...]:
    """What the witnesses say who know something in it."""
    spoke = []
    for name, witness in known:
        try:
            said = witness.read(exhibit)
        except Exception as error:  # one that fails must not silence the others
            record.notes.append(f"{exhibit.name}: witness {name} failed: {error!r}")
            continue
        if said is not None:
            spoke.append(said)
    return tuple(spoke)


def _add(record: Record, said: Testimony) -> None:
    said = told_apart(record.groups, said)
    record.heard += said.heard
    record.glimpses += said.glimpses
    record.recorded += said.recorded
    record.overdue += said.overdue
    record.groups.update({k: v for k, v in said.groups.items() if v or k not in record.groups})
    record.notes += said.notes


@cache
def _witnesses() -> tuple[tuple[tuple[str, LogReader], ...], tuple[Broken, ...]]:
    loaded = list(plugins(readers, "READER", LogReader))
    broken = tuple(p for p in loaded if isinstance(p, Broken))
    good = tuple((p.stem, p.value) for p in loaded if not isinstance(p, Broken))
    return tuple((n, w) for n, w in good if isinstance(w, LogReader)), broken
