"""Entries of PyTorch's Flight Recorder, from its dumps and from a living process.

Sequence numbers, shapes and frames are read; times are not, and of ``state`` only that a collective was
completed: on gloo it says ``scheduled`` of all (measured with PyTorch 2.13), but ``pg_status`` tells the last
that was completed.
"""

from __future__ import annotations

import re
from typing import Any

from allaboard.facts import Frame, Recorded

MAX_COLLECTIVES = 200_000
"""Collectives that are read of one rank."""
MAX_FRAMES = 64
"""Frames that are read of one collective."""


def read_entries(dump: Any, rank: int) -> tuple[Recorded, ...] | None:
    """Return the collectives of a dump as those of this rank; None if it is no dump."""
    entries = dump.get("entries") if isinstance(dump, dict) else None
    if not isinstance(entries, list):
        return None
    statuses = dump.get("pg_status")
    last_completed = {
        str(group)[:60]: status.get("last_completed_collective")
        for group, status in list(statuses.items() if isinstance(statuses, dict) else ())[:1000]
        if isinstance(status, dict)
    }
    return tuple(
        r
        for e in entries[:MAX_COLLECTIVES]
        if (r := _read_entry(e, rank, last_completed)) is not None
    )


def _read_entry(entry: Any, rank: int, last_completed: dict[str, Any]) -> Recorded | None:
    """Return the collective, or None.

    Point-to-point operations have numbers of their own, which rightly differ between ranks.
    """
    if not isinstance(entry, dict) or entry.get("is_p2p"):
        return None
    number = entry.get("collective_seq_id")
    group = entry.get("process_group")
    if not isinstance(number, int) or not isinstance(group, list | tuple):
        return None
    record_id = entry.get("record_id")
    group_completed = last_completed.get(str(entry.get("pg_id"))[:60])
    return Recorded(
        rank=rank,
        group=" ".join(_as_word(g, 60) for g in group[:2]),
        number=number,
        op=_as_word(entry.get("profiling_name", "?"), 400).rpartition(":")[2][:60],
        order=record_id if isinstance(record_id, int) else 0,
        sizes=_as_sizes(entry.get("input_sizes")),
        dtypes=tuple(_as_word(d, 30) for d in _as_list(entry.get("input_dtypes"))[:16]),
        frames=tuple(
            f
            for e in _as_list(entry.get("frames"))[:MAX_FRAMES]
            if (f := _read_frame(e)) is not None
        ),
        completed=entry.get("state") == "completed"
        or (isinstance(group_completed, int) and number <= group_completed),
    )


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _as_sizes(value: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(
        tuple(n for n in _as_list(size)[:16] if isinstance(n, int)) for size in _as_list(value)[:16]
    )


def _read_frame(value: Any) -> Frame | None:
    if not isinstance(value, dict):
        return None
    line = value.get("line")
    name, file = _as_word(value.get("name", "?"), 200), _as_word(value.get("filename", "?"), 500)
    return Frame(file, line if isinstance(line, int) else 0, name)


def _as_word(value: Any, max_length: int) -> str:
    """Return the value as one short word.

    A list is none: a small file may hold one that grows without bounds as text, by references to itself.
    """
    if isinstance(value, str):
        return value[:max_length]
    return str(value)[:max_length] if value is None or isinstance(value, int | float) else "?"


def _as_ranks(value: Any) -> tuple[int, ...]:
    """Return ranks from text, ``[0, 1]``, as in a dump of PyTorch 2.13, or from a list."""
    if isinstance(value, str):
        return tuple(int(r) for r in re.findall(r"\d{1,7}", value[:1_000_000]))
    return tuple(r for r in _as_list(value)[:MAX_COLLECTIVES] if isinstance(r, int))


def read_groups(config: Any, recorded: tuple[Recorded, ...]) -> dict[str, tuple[int, ...]]:
    """Return each group's members; the default group's entry has no name in PyTorch 2.13."""
    members_by_name: dict[str, tuple[int, ...]] = {}
    for group in list(config.values())[:1000] if isinstance(config, dict) else ():
        if isinstance(group, dict):
            name = f"{_as_word(group.get('name'), 60)} {_as_word(group.get('desc'), 60)}"
            members_by_name[name] = _as_ranks(group.get("ranks"))
    names = {r.group for r in recorded}
    default = [n for n in names if n.endswith("default_pg") and n not in members_by_name]
    return {
        n: members_by_name.get(n, members_by_name.get(" ", ()) if n in default else ())
        for n in names
    }
