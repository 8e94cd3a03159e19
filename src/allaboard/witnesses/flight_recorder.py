"""PyTorch's Flight Recorder: one file a rank, pickle or JSON (``TORCH_FR_BUFFER_SIZE``).

Its sequence numbers, shapes and frames are taken; its ``state`` and times are not: on gloo they are
wrong (measured with PyTorch 2.13). A pickle is read by `formats.plain_pickle`, never loaded.
"""

from __future__ import annotations

import json
import re
from typing import Any

from allaboard.contracts import Witness
from allaboard.facts import Exhibit, Frame, Recorded, Testimony
from allaboard.formats.plain_pickle import NotPlain, read

MOST = 200_000
"""Collectives that are read of one rank."""
FRAMES = 64
_RANK = re.compile(r"(\d+)(?:\.\w+)?$")


def hears(exhibit: Exhibit) -> Testimony | None:
    pickled = exhibit.data[:1] == b"\x80"
    if not pickled and not _looks_like_json(exhibit.data):
        return None
    if exhibit.cut:
        return Testimony(notes=(f"{exhibit.name}: too large to be read",)) if pickled else None
    try:
        dump = read(exhibit.data) if pickled else json.loads(exhibit.data)
    except NotPlain as error:
        return Testimony(notes=(f"{exhibit.name}: a pickle that is not read: {error}",))
    except (ValueError, RecursionError):
        return Testimony(notes=(f"{exhibit.name}: a Flight Recorder trace that is cut short",))
    entries = dump.get("entries") if isinstance(dump, dict) else None
    if not isinstance(entries, list):
        return Testimony(notes=(f"{exhibit.name}: a pickle without entries",)) if pickled else None
    found = _RANK.search(exhibit.name.rpartition("/")[2])
    rank = int(found[1][-7:]) if found is not None else exhibit.rank
    recorded = tuple(r for e in entries[:MOST] if (r := _entry(e, rank)) is not None)
    groups = _groups(dump.get("pg_config"), recorded)
    notes = () if recorded else (f"{exhibit.name}: a trace without collectives",)
    return Testimony(recorded=recorded, groups=groups, notes=notes)


def _looks_like_json(data: bytes) -> bool:
    return data[:1] == b"{" and b'"entries"' in data and b'"collective_seq_id"' in data


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
        group=" ".join(str(g)[:60] for g in group[:2]),
        number=number,
        op=str(entry.get("profiling_name", "?")).rpartition(":")[2][:60],
        order=order if isinstance(order, int) else 0,
        sizes=_sizes(entry.get("input_sizes")),
        dtypes=tuple(str(d)[:30] for d in _list(entry.get("input_dtypes"))[:16]),
        frames=tuple(
            f for e in _list(entry.get("frames"))[:FRAMES] if (f := _frame(e)) is not None
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
    name, file = str(value.get("name", "?")), str(value.get("filename", "?"))
    return Frame(file[:500], line if isinstance(line, int) else 0, name[:200])


def _groups(config: Any, recorded: tuple[Recorded, ...]) -> dict[str, tuple[int, ...]]:
    """Each group's members; the default group's entry has no name in 2.13."""
    found: dict[str, tuple[int, ...]] = {}
    for one in list(config.values())[:1000] if isinstance(config, dict) else ():
        if isinstance(one, dict):
            ranks = tuple(int(r) for r in re.findall(r"\d{1,7}", str(one.get("ranks"))[:1_000_000]))
            found[f"{one.get('name')} {one.get('desc')}"[:121]] = ranks
    names = {r.group for r in recorded}
    default = [n for n in names if n.endswith("default_pg") and n not in found]
    return {n: found.get(n, found.get(" ", ()) if n in default else ()) for n in names}


WITNESS = Witness(hears=hears)
