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
from allaboard.diagnosis.logs.group_name_collisions import disambiguate_groups
from allaboard.diagnosis.logs.log_demux import attribute_file, split_by_process
from allaboard.diagnosis.logs.node_local_ranks import PartReading, assign_global_ranks
from allaboard.diagnosis.logs.traceback_attribution import attribute_tracebacks
from allaboard.facts import Exhibit, Glimpse, Heard, Overdue, Recorded, Testimony
from allaboard.plugins import Broken, plugins


class LogRecord(msgspec.Struct):
    """All testimony: ``logs`` are the ranks of the exhibits that were read, ``read`` their names;
    ``labelled`` the ranks that a launcher's prefix named in them; ``nodes`` the files of which it told the
    numbers on a node alone; ``well`` the files that end with the words that the training is over."""

    heard: list[Heard] = []
    glimpses: list[Glimpse] = []
    recorded: list[Recorded] = []
    overdue: list[Overdue] = []
    groups: dict[str, tuple[int, ...]] = {}
    ranks: list[int] = []
    names: list[str] = []
    labelled: set[int] = set()
    unranked_nodes: tuple[str, ...] = ()
    good_endings: dict[str, str] = {}
    job_failed: bool = False
    """Whether a launcher, or whoever started a process, tells that it failed."""
    notes: list[str] = []
    unknown_count: int = 0
    """Exhibits in which no witness knew anything."""


def read_all(exhibits: Iterable[Exhibit], notes: list[str]) -> LogRecord:
    """What all witnesses say of these exhibits. A witness that fails becomes a note."""
    record = LogRecord(notes=notes)
    all_readers, broken = _load_readers()
    record.notes += [f"witness {b.stem} could not be loaded: {b.why}" for b in broken]
    readings: list[PartReading] = []
    for number, exhibit in enumerate(map(attribute_file, exhibits)):
        record.names.append(exhibit.name)
        parts = split_by_process(exhibit)
        part_readings = [
            PartReading(number, part, _read_part(part, all_readers, record)) for part in parts
        ]
        record.ranks.append(_rank_of_file(exhibit, part_readings))
        record.job_failed |= launcher_reports_failure(exhibit.text)
        if (final_words := training_over_line(exhibit.text)) and _is_of_unnamed_process(
            exhibit, parts, final_words
        ):
            record.good_endings[exhibit.name] = final_words
        record.unknown_count += not any(new_reading.testimony for new_reading in part_readings)
        readings += [
            msgspec.structs.replace(new_reading, part=_without_data(new_reading.part))
            for new_reading in part_readings
        ]
    renumbered, record.unranked_nodes = assign_global_ranks(readings)
    for reading, new_reading in zip(readings, renumbered, strict=True):
        if reading.part.local >= 0 and record.ranks[new_reading.number] >= 0:
            record.ranks[new_reading.number] = new_reading.part.rank
        if new_reading.part.labelled and new_reading.part.rank >= 0:
            record.labelled.add(new_reading.part.rank)
        for testimony in new_reading.testimony:
            _add(record, testimony)
    record.job_failed |= any(map(_is_reported_failure, record.glimpses))
    record.glimpses = attribute_tracebacks(record.glimpses)
    return record


def _rank_of_file(exhibit: Exhibit, readings: Iterable[PartReading]) -> int:
    """The rank whose file it is: not the number in its name where that is a pid, or of a node, or where what
    is in it is of others."""
    dump_glimpses = [
        g
        for reading in readings
        for t in reading.testimony
        for g in t.glimpses
        if g.stack is not None
    ]
    is_own = not dump_glimpses or any(g.rank == exhibit.rank for g in dump_glimpses)
    return (
        exhibit.rank
        if is_own and not any(o.part.local >= 0 and o.part.labelled for o in readings)
        else -1
    )


def _is_reported_failure(glimpse: Glimpse) -> bool:
    end = glimpse.exit
    failed = (
        end is not None and not end.ours and (end.signal is not None or end.code not in (0, None))
    )
    return failed and glimpse.raised is None


def _is_of_unnamed_process(exhibit: Exhibit, parts: Sequence[Exhibit], final_words: str) -> bool:
    """Whether no launcher or collector names whose line the last is: it would be of that one alone."""
    return any(
        p.rank == exhibit.rank
        and not p.host
        and p.local < 0
        and final_words in p.text[-MAX_BUFFERED_CHARS:]
        for p in parts
    )


def _without_data(part: Exhibit) -> Exhibit:
    """Without what was read already: all files together do not fit into memory."""
    return msgspec.structs.replace(part, data=b"", numbers=())


def _read_part(
    exhibit: Exhibit, all_readers: Iterable[tuple[str, LogReader]], record: LogRecord
) -> tuple[Testimony, ...]:
    """What the witnesses say who know something in it."""
    testimonies = []
    for name, reader in all_readers:
        try:
            testimony = reader.read(exhibit)
        except Exception as error:  # one that fails must not silence the others
            record.notes.append(f"{exhibit.name}: witness {name} failed: {error!r}")
            continue
        if testimony is not None:
            testimonies.append(testimony)
    return tuple(testimonies)


def _add(record: LogRecord, testimony: Testimony) -> None:
    testimony = disambiguate_groups(record.groups, testimony)
    record.heard += testimony.heard
    record.glimpses += testimony.glimpses
    record.recorded += testimony.recorded
    record.overdue += testimony.overdue
    record.groups.update({k: v for k, v in testimony.groups.items() if v or k not in record.groups})
    record.notes += testimony.notes


@cache
def _load_readers() -> tuple[tuple[tuple[str, LogReader], ...], tuple[Broken, ...]]:
    plugins_found = list(plugins(readers, "READER", LogReader))
    broken = tuple(p for p in plugins_found if isinstance(p, Broken))
    readers_by_name = tuple((p.stem, p.value) for p in plugins_found if not isinstance(p, Broken))
    return tuple((n, w) for n, w in readers_by_name if isinstance(w, LogReader)), broken
