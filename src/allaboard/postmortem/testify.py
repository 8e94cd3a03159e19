"""Every witness hears every exhibit; what they say is brought together."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import msgspec

from allaboard import witnesses
from allaboard.contracts import Witness
from allaboard.discover import Broken, plugins
from allaboard.facts import Exhibit, Glimpse, Heard, Overdue, Recorded, Testimony
from allaboard.postmortem.group_names import told_apart
from allaboard.postmortem.streams import owned, streams


class Record(msgspec.Struct):
    """All testimony: ``logs`` are the ranks of the exhibits that were read, ``read`` their names;
    ``labelled`` the ranks that a launcher's prefix named in them."""

    heard: list[Heard] = []
    glimpses: list[Glimpse] = []
    recorded: list[Recorded] = []
    overdue: list[Overdue] = []
    groups: dict[str, tuple[int, ...]] = {}
    logs: list[int] = []
    read: list[str] = []
    labelled: set[int] = set()
    notes: list[str] = []
    silent: int = 0
    """Exhibits in which no witness knew anything."""


def take(exhibits: Iterable[Exhibit], notes: list[str]) -> Record:
    """What all witnesses say of these exhibits. A witness that fails becomes a note."""
    record = Record(notes=notes)
    known, broken = _witnesses()
    record.notes += [f"witness {b.stem} could not be loaded: {b.why}" for b in broken]
    for exhibit in map(owned, exhibits):
        record.read.append(exhibit.name)
        record.logs.append(exhibit.rank)
        parts = streams(exhibit)
        record.labelled |= {p.rank for p in parts if p.labelled and p.rank >= 0}
        spoke = [_ask(part, known, record) for part in parts]
        record.silent += not any(spoke)
    return record


def _ask(exhibit: Exhibit, known: Iterable[tuple[str, Witness]], record: Record) -> bool:
    """Whether any witness knew something in it."""
    spoke = False
    for name, witness in known:
        try:
            said = witness.hears(exhibit)
        except Exception as error:  # one that fails must not silence the others
            record.notes.append(f"{exhibit.name}: witness {name} failed: {error!r}")
            continue
        if said is not None:
            spoke = True
            _add(record, said)
    return spoke


def _add(record: Record, said: Testimony) -> None:
    said = told_apart(record.groups, said)
    record.heard += said.heard
    record.glimpses += said.glimpses
    record.recorded += said.recorded
    record.overdue += said.overdue
    record.groups.update({k: v for k, v in said.groups.items() if v or k not in record.groups})
    record.notes += said.notes


@cache
def _witnesses() -> tuple[tuple[tuple[str, Witness], ...], tuple[Broken, ...]]:
    loaded = list(plugins(witnesses, "WITNESS", Witness))
    broken = tuple(p for p in loaded if isinstance(p, Broken))
    good = tuple((p.stem, p.value) for p in loaded if not isinstance(p, Broken))
    return tuple((n, w) for n, w in good if isinstance(w, Witness)), broken
