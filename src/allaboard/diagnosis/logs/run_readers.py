"""Every reader reads every exhibit; their testimony is collected here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import msgspec

from allaboard.analysis.log_ends.post_traceback_output import (
    MAX_BUFFERED_CHARS,
    launcher_reports_failure,
    training_over_line,
    work_over_line,
)
from allaboard.contracts import LogReader
from allaboard.diagnosis import instruments, platforms, readers
from allaboard.diagnosis.logs.group_name_collisions import disambiguate_groups
from allaboard.diagnosis.logs.log_demux import (
    attribute_file,
    restore_heads,
    split_by_process,
    unquote_lines,
)
from allaboard.diagnosis.logs.node_local_ranks import PartReading, assign_global_ranks
from allaboard.diagnosis.logs.task_identification import name_tasks, own_task
from allaboard.diagnosis.logs.traceback_attribution import (
    attribute_tracebacks,
    join_reported_crashes,
    settle_threads,
)
from allaboard.diagnosis.readers.fatal_log import UNEXPLAINED_END
from allaboard.facts import (
    Exhibit,
    Glimpse,
    Heard,
    JobStart,
    LoggedReason,
    Overdue,
    Recorded,
    Testimony,
    Who,
)
from allaboard.facts.instruments.collective_times import CollectiveTimes, RankTimes
from allaboard.facts.instruments.hardware import Hardware, merge_hardware
from allaboard.facts.instruments.nccl_state import NcclReport, NcclStates
from allaboard.formats.dumps.json_lines import join_spread_objects
from allaboard.formats.dumps.python_tracebacks import TRACEBACK_HEAD
from allaboard.formats.dumps.wrapped_lines import join_wrapped_lines
from allaboard.plugins import Broken, plugins


class LogRecord(msgspec.Struct):
    """The testimony of all readers."""

    heard: list[Heard] = []
    glimpses: list[Glimpse] = []
    recorded: list[Recorded] = []
    overdue: list[Overdue] = []
    groups: dict[str, tuple[int, ...]] = {}
    hardware: list[Hardware] = []
    """Readings of the hosts' hardware, of all files."""
    nccl: list[NcclReport] = []
    """Answers of NCCL's own service, of all files."""
    timed: list[RankTimes] = []
    """Times of collectives, by rank and communicator."""
    starts: list[JobStart] = []
    """Starts of the job, of all files."""
    reasons: list[LoggedReason] = []
    """Errors that the files report shortly before their ends."""
    ranks: list[int] = []
    """Ranks of the exhibits that were read, in their order; -1 for none."""
    names: list[str] = []
    """Names of the exhibits that were read."""
    labelled: set[int] = set()
    """Ranks that a launcher's prefix names in them."""
    unranked_nodes: tuple[str, ...] = ()
    """Files that state only ranks on a node, if there are several nodes."""
    good_endings: dict[str, str] = {}
    """Last words of the files that end by saying that the training is over."""
    last_words: dict[tuple[str, int], str] = {}
    """How the logs of members end that say that their work is done, by job and index."""
    finished_files: set[str] = set()
    """Files of which a part ends by saying that the work is done, whoever wrote it."""
    empty_files: set[str] = set()
    """Names of the exhibits that have no line."""
    job_failed: bool = False
    """Set if a launcher, or the parent of a process, reports a failure."""
    has_traceback: bool = False
    """Set if one of the files has a traceback, whether it ended a process or not."""
    notes: list[str] = []
    """What could not be read."""
    unknown_count: int = 0
    """Exhibits in which no reader found anything."""

    def instrument_facts(self, members: tuple[Who, ...]) -> Iterator[object]:
        """Yield what the rules about instruments read; nothing if no instrument was read."""
        if any(self.hardware):
            yield merge_hardware([*self.hardware, Hardware(members=members)])
        if self.nccl:
            yield NcclStates(reports=tuple(self.nccl), members=members)
        if self.timed:
            yield CollectiveTimes(ranks=tuple(self.timed), members=members)


def read_all(exhibits: Iterable[Exhibit], notes: list[str]) -> LogRecord:
    """Return what all readers find in these exhibits. A reader that fails becomes a note."""
    record = LogRecord(notes=notes)
    all_readers, broken = _load_readers()
    record.notes += [f"witness {b.stem} could not be loaded: {b.why}" for b in broken]
    readings: list[PartReading] = []
    for number, exhibit in enumerate(map(attribute_file, map(unquote_lines, exhibits))):
        record.names.append(exhibit.name)
        if not exhibit.data.strip():
            record.empty_files.add(exhibit.name)
        if joined := join_spread_objects(exhibit.text):
            exhibit = msgspec.structs.replace(exhibit, data=joined.text.encode())
        numbers = joined.numbers if joined else ()
        parts, part_readings = _read_exhibit(number, exhibit, all_readers, record, numbers)
        if not _says_anything(part_readings) and (joined := join_wrapped_lines(exhibit.text)):
            # Copied from a terminal: no long line is as it was written.
            whole = msgspec.structs.replace(exhibit, data=joined.text.encode())
            in_file = tuple(numbers[n - 1] for n in joined.numbers) if numbers else joined.numbers
            parts, part_readings = _read_exhibit(number, whole, all_readers, record, in_file)
        record.has_traceback |= any(TRACEBACK_HEAD in part.text for part in parts)
        record.ranks.append(_rank_of_file(exhibit, part_readings))
        record.job_failed |= launcher_reports_failure(exhibit.text)
        if (final_words := training_over_line(exhibit.text)) and _is_of_unnamed_process(
            exhibit, parts, final_words
        ):
            record.good_endings[exhibit.name] = final_words
        record.unknown_count += not any(
            testimony != Testimony(reasons=testimony.reasons)
            for new_reading in part_readings
            for testimony in new_reading.testimony
        )
        readings += [
            msgspec.structs.replace(new_reading, part=_without_data(new_reading.part))
            for new_reading in part_readings
        ]
    renumbered, record.unranked_nodes = assign_global_ranks(readings)
    renumbered = name_tasks(renumbered)
    for reading, new_reading in zip(readings, renumbered, strict=True):
        is_task = reading.part.rank != new_reading.part.rank < 0
        if (reading.part.local >= 0 or is_task) and record.ranks[new_reading.number] >= 0:
            record.ranks[new_reading.number] = new_reading.part.rank
        if new_reading.part.labelled and new_reading.part.rank >= 0:
            record.labelled.add(new_reading.part.rank)
        if new_reading.last_words:
            record.finished_files.add(new_reading.part.name)
        if new_reading.last_words and (member := _member_key(new_reading)) is not None:
            record.last_words[member] = new_reading.last_words
        for testimony in new_reading.testimony:
            _add(record, testimony)
    record.job_failed |= any(map(_is_reported_failure, record.glimpses))
    record.glimpses = settle_threads(attribute_tracebacks(record.glimpses))
    record.heard, record.glimpses = join_reported_crashes(record.heard, record.glimpses)
    return record


def _read_exhibit(
    number: int,
    exhibit: Exhibit,
    all_readers: Sequence[tuple[str, LogReader]],
    record: LogRecord,
    numbers: tuple[int, ...] = (),
) -> tuple[tuple[Exhibit, ...], list[PartReading]]:
    """Return what each process wrote into a file, and what the readers find in it.

    ``numbers`` are those of its lines in the file, if they are not the same.
    """
    parts, task = tuple(map(restore_heads, split_by_process(exhibit))), own_task(exhibit)
    if numbers:
        parts = tuple(
            msgspec.structs.replace(
                part,
                numbers=tuple(numbers[n - 1] for n in part.numbers) if part.numbers else numbers,
            )
            for part in parts
        )
    part_readings = [
        PartReading(
            number, part, _read_part(part, all_readers, record), work_over_line(part.text), task
        )
        for part in parts
    ]
    return parts, part_readings


def _says_anything(readings: Iterable[PartReading]) -> bool:
    """Return True if a reader found a message or an exception, and not only what it ends with."""
    return any(
        any(h.rule != UNEXPLAINED_END for h in t.heard)
        or any(g.raised is not None for g in t.glimpses)
        for reading in readings
        for t in reading.testimony
    )


def _member_key(reading: PartReading) -> tuple[str, int] | None:
    """Return the job and index of the member whose log it is, None if they are not known."""
    if reading.part.rank >= 0:
        return "worker", reading.part.rank
    job, _, index = reading.task.rpartition(" ")
    return (job, int(index)) if job and not reading.part.host else None


def _rank_of_file(exhibit: Exhibit, readings: Iterable[PartReading]) -> int:
    """Return the rank whose file it is, -1 for none.

    The number in a name is no rank if it is a pid or a node's, or if the file's content is of others.
    """
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
    """Return True if no launcher or collector names the process whose words the last are: they count for all
    then."""
    return any(
        p.rank == exhibit.rank
        and not p.host
        and p.local < 0
        and final_words in p.text[-MAX_BUFFERED_CHARS:]
        for p in parts
    )


def _without_data(part: Exhibit) -> Exhibit:
    """Return the part without its data: all files together do not fit into memory."""
    return msgspec.structs.replace(part, data=b"", numbers=())


def _read_part(
    exhibit: Exhibit, all_readers: Iterable[tuple[str, LogReader]], record: LogRecord
) -> tuple[Testimony, ...]:
    """Return the testimony of the readers that find something in it."""
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
    record.starts += testimony.starts
    record.reasons += testimony.reasons
    if testimony.hardware or testimony.hardware.devices:
        record.hardware.append(testimony.hardware)
    record.nccl += testimony.nccl
    record.timed += testimony.timed
    record.groups.update({k: v for k, v in testimony.groups.items() if v or k not in record.groups})
    record.notes += testimony.notes


@cache
def _load_readers() -> tuple[tuple[tuple[str, LogReader], ...], tuple[Broken, ...]]:
    plugins_found = [
        plugin
        for room in (readers, platforms, instruments)
        for plugin in plugins(room, "READER", LogReader)
    ]
    broken = tuple(p for p in plugins_found if isinstance(p, Broken))
    readers_by_name = tuple((p.stem, p.value) for p in plugins_found if not isinstance(p, Broken))
    return tuple((n, w) for n, w in readers_by_name if isinstance(w, LogReader)), broken
