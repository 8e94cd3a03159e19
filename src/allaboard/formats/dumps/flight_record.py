"""The entries of PyTorch's Flight Recorder, as its dumps have them and as a living process tells them.

Its sequence numbers, shapes and frames are taken; its ``state`` and times are not: on gloo they are
wrong (measured with PyTorch 2.13).
"""

from __future__ import annotations

import re
from typing import Any

from allaboard.facts import Frame, Recorded

MAX_COLLECTIVES = 200_000
"""Collectives that are read of one rank."""
MAX_FRAMES = 64


def read_entries(dump: Any, rank: int) -> tuple[Recorded, ...] | None:
    """The collectives of a dump, as those of this rank; None where it is no dump."""
    found = dump.get("entries") if isinstance(dump, dict) else None
    if not isinstance(found, list):
        return None
    return tuple(r for e in found[:MAX_COLLECTIVES] if (r := _entry(e, rank)) is not None)


def _entry(entry: Any, rank: int) -> Recorded | None:
    """Point-to-point operations have numbers of their own, which differ between ranks by right."""
    if not isinstance(entry, dict) or entry.get("is_p2p"):
        return None
    number = entry.get("collective_seq_id")
    group = entry.get("process_group")
    if not isinstance(number, int) or not isinstance(group, list | tuple):
        return None
    order = entry.get("record_id")
    return Recorded(
        rank=rank,
        group=" ".join(_word(g, 60) for g in group[:2]),
        number=number,
        op=_word(entry.get("profiling_name", "?"), 400).rpartition(":")[2][:60],
        order=order if isinstance(order, int) else 0,
        sizes=_sizes(entry.get("input_sizes")),
        dtypes=tuple(_word(d, 30) for d in _list(entry.get("input_dtypes"))[:16]),
        frames=tuple(
            f for e in _list(entry.get("frames"))[:MAX_FRAMES] if (f := _frame(e)) is not None
        ),
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _sizes(value: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(
        tuple(n for n in _list(one)[:16] if isinstance(n, int)) for one in _list(value)[:16]
    )


def _frame(value: Any) -> Frame | None:
    if not isinstance(value, dict):
        return None
    line = value.get("line")
    name, file = _word(value.get("name", "?"), 200), _word(value.get("filename", "?"), 500)
    return Frame(file, line if isinstance(line, int) else 0, name)


def _word(value: Any, most: int) -> str:
    """What is said in one word. A list is none: a small file may hold one that grows without bounds as text,
    by references to itself."""
    if isinstance(value, str):
        return value[:most]
    return str(value)[:most] if value is None or isinstance(value, int | float) else "?"


def _ranks(value: Any) -> tuple[int, ...]:
    """As text, ``[0, 1]``, which it is in a dump of 2.13, or as a list."""
    if isinstance(value, str):
        return tuple(int(r) for r in re.findall(r"\d{1,7}", value[:1_000_000]))
    return tuple(r for r in _list(value)[:MAX_COLLECTIVES] if isinstance(r, int))


def read_groups(config: Any, recorded: tuple[Recorded, ...]) -> dict[str, tuple[int, ...]]:
    """Each group's members; the default group's entry has no name in 2.13."""
    found: dict[str, tuple[int, ...]] = {}
    for one in list(config.values())[:1000] if isinstance(config, dict) else ():
        if isinstance(one, dict):
            name = f"{_word(one.get('name'), 60)} {_word(one.get('desc'), 60)}"
            found[name] = _ranks(one.get("ranks"))
    names = {r.group for r in recorded}
    default = [n for n in names if n.endswith("default_pg") and n not in found]
    return {n: found.get(n, found.get(" ", ()) if n in default else ()) for n in names}
