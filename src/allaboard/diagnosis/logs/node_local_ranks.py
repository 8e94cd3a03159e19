"""Global ranks for the files of several nodes that state only the rank on their node. Pure.

torchrun's prefix (``[default0]:``) and the folders of its ``--log-dir`` do so: the number is a rank if there
is one node, and nobody's if there are two.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

import msgspec

from allaboard.diagnosis.logs.rank_from_filename import TORCHRUN_LOG
from allaboard.facts import Exhibit, Glimpse, Testimony

_SUFFIX = re.compile(r"\.(?:log|txt|out|err|stdout|stderr)$", re.I)
_STREAM_NAME = re.compile(r"(?<![a-z])(?:std)?(?:out|err|error|output)(?![a-z])", re.I)
_ATTEMPT = re.compile(r"attempt_\d+")


class PartReading(msgspec.Struct, frozen=True):
    """Testimony of the readers about one part of a file."""

    number: int
    """Index of the file."""
    part: Exhibit
    """The part that was read."""
    testimony: tuple[Testimony, ...]
    """What each reader found in it."""
    last_words: str = ""
    """Its last line, if that says that the work of its process is done."""
    task: str = ""
    """The task of its file, as "ps 1"; "" if none is known."""


def assign_global_ranks(
    readings: Sequence[PartReading],
) -> tuple[list[PartReading], tuple[str, ...]]:
    """Return the readings with the ranks that are known, and the files of the nodes whose ranks are not."""
    first_ranks: dict[str, set[int]] = {}
    for reading in readings:
        torchrun_match = TORCHRUN_LOG.search(reading.part.name)
        if torchrun_match is not None and reading.part.local < 0 <= reading.part.rank - int(
            torchrun_match[1]
        ):
            first_ranks.setdefault(_node_key(reading.part.name), set()).add(
                reading.part.rank - int(torchrun_match[1])
            )
    renumbered = []
    for reading in readings:
        candidates = (
            first_ranks.get(_node_key(reading.part.name), set())
            if reading.part.local >= 0
            else set()
        )
        is_known = len(candidates) == 1
        renumbered.append(
            _renumber(reading, min(candidates) + reading.part.local, -1) if is_known else reading
        )
    unranked = _unranked_nodes(renumbered)
    if len(unranked) < 2:
        return renumbered, unranked
    return [
        _renumber(o, -1, o.part.local) if o.part.local >= 0 else o for o in renumbered
    ], unranked


def node_label(file: str) -> str:
    """Return the name of the node for people: its launcher's log, or the folder of that run."""
    if TORCHRUN_LOG.search(file) is None:
        return file
    run_folders = [p for p in PurePosixPath(file).parents[1:] if not _ATTEMPT.fullmatch(p.name)]
    return str(run_folders[0]) if run_folders else file


def _unranked_nodes(readings: Sequence[PartReading]) -> tuple[str, ...]:
    """Return two names or more if there are several nodes of which no rank is known; else ().

    A node's standard output and its errors are two files of one name, and what is in its log is in its
    folders, too. A single one is of a job on one node, unless another launcher's log has the same ranks.
    """
    logs: dict[tuple[str, str], str] = {}
    folders: dict[tuple[str, str], str] = {}
    file_of_rank = {
        o.part.rank: o.part.name
        for o in readings
        if o.part.local < 0 <= o.part.rank and o.part.labelled
    }
    for reading in readings:
        name = reading.part.name
        if reading.part.local < 0:
            continue
        host = reading.part.host if reading.part.rank < 0 else ""
        names = logs if TORCHRUN_LOG.search(name) is None else folders
        names.setdefault((_node_key(name), host), node_label(name))
        log_of_rank = file_of_rank.get(reading.part.rank, name)
        if names is logs and _node_key(log_of_rank) != _node_key(name):
            logs[_node_key(log_of_rank), ""] = log_of_rank
    ambiguous = [f for f in (logs, folders) if len(f) > 1]
    return tuple(name for f in ambiguous for name in f.values())


def _node_key(name: str) -> str:
    return _STREAM_NAME.sub("", _SUFFIX.sub("", node_label(name)))


def _renumber(reading: PartReading, rank: int, local_rank: int) -> PartReading:
    """Return the reading with this rank instead of the rank on the node.

    The latter stays as ``local_rank`` if nothing better is known.
    """
    part = msgspec.structs.replace(reading.part, rank=rank, local=local_rank)
    testimony = tuple(replace_rank(t, reading.part, part) for t in reading.testimony)
    return msgspec.structs.replace(reading, part=part, testimony=testimony)


def replace_rank(testimony: Testimony, old_part: Exhibit, new_part: Exhibit) -> Testimony:
    """Return what was read in a part with the part's new rank in place of its old one."""
    replace = msgspec.structs.replace

    def glimpse(old_glimpse: Glimpse) -> Glimpse:
        return (
            replace(old_glimpse, rank=new_part.rank, guess=new_part.local)
            if old_glimpse.rank == old_part.rank
            else old_glimpse
        )

    return replace(
        testimony,
        glimpses=tuple(map(glimpse, testimony.glimpses)),
        overdue=tuple(
            replace(o, rank=new_part.rank) if o.rank == old_part.rank else o
            for o in testimony.overdue
        ),
        heard=tuple(
            replace(
                heard,
                speakers=tuple(
                    replace(s, rank=new_part.rank) if s.rank == old_part.rank else s
                    for s in heard.speakers
                ),
            )
            for heard in testimony.heard
        ),
    )
