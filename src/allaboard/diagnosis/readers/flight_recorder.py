"""PyTorch's Flight Recorder: one file a rank, pickle or JSON (``TORCH_FR_BUFFER_SIZE``).

A pickle is read by `formats.plain_pickle`, never loaded.
"""

from __future__ import annotations

import json
import re

from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Testimony
from allaboard.formats.dumps.flight_record import read_entries
from allaboard.formats.dumps.flight_record import read_groups as groups_of
from allaboard.formats.safe_pickle import UnsafePickleError, read_plain_pickle

_LAST_NUMBER = re.compile(r"(\d+)(?:\.\w+)?$")
_RANK_WORD = re.compile(r"rank[-_.]?(\d{1,7})(?!\d)", re.I)
"""Finds the rank where a date stands behind it."""

_DUMP_NAME = re.compile(
    r"(?:^|[^a-z])(?:trace|flight|recorder|fr|dump)(?=[^a-z]).*\d|\.(?:pkl|pickle)$", re.I
)
"""Usual names of dumps; ``nccl_trace_rank_0`` is the default."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    if not exhibit.data and _DUMP_NAME.search(exhibit.name.rpartition("/")[2]):
        return Testimony(notes=(f"{exhibit.name}: empty; the dump of this rank was not written",))
    pickled = exhibit.data[:1] == b"\x80"
    if not pickled and not _looks_like_json(exhibit.data):
        return None
    if exhibit.cut:
        return Testimony(notes=(f"{exhibit.name}: too large to be read",)) if pickled else None
    try:
        dump = read_plain_pickle(exhibit.data) if pickled else json.loads(exhibit.data)
    except UnsafePickleError as error:
        return Testimony(notes=(f"{exhibit.name}: a pickle that is not read: {error}",))
    except (ValueError, RecursionError):
        return Testimony(notes=(f"{exhibit.name}: a Flight Recorder trace that is cut short",))
    name = exhibit.name.rpartition("/")[2]
    rank_match = _RANK_WORD.search(name) or _LAST_NUMBER.search(name)
    recorded = read_entries(
        dump, int(rank_match[1][-7:]) if rank_match is not None else exhibit.rank
    )
    if recorded is None:
        return Testimony(notes=(f"{exhibit.name}: a pickle without entries",)) if pickled else None
    groups = groups_of(dump.get("pg_config"), recorded)
    notes = () if recorded else (f"{exhibit.name}: a trace without collectives",)
    return Testimony(recorded=recorded, groups=groups, notes=notes)


def _looks_like_json(data: bytes) -> bool:
    return data[:1] == b"{" and b'"entries"' in data and b'"collective_seq_id"' in data


READER = LogReader(read=read_log)
