"""Commands that a script runs alike on several hosts: ``for h in …; do ssh $h '…'``, ``pdsh -w … '…'``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from allaboard.facts import Origin, Value
from allaboard.formats.shell.loops import Loops
from allaboard.formats.shell.word import Word

_SSH = re.compile(r"(?:.*/)?ssh\Z")
_MANY = re.compile(r"(?:.*/)?(?:pdsh|clush)\Z")


class OnEach(NamedTuple):
    """The script that a command hands to each of several hosts: with what the variables were in the first
    round (``told``), and with nothing in their place, since a later round may have changed them (``bare``);
    ``alike``: nothing in it depends on the host."""

    told: Value
    bare: Value
    alike: bool


def on_each(words: Sequence[Word], line: Sequence[Value], loops: Loops) -> OnEach | None:
    """None where it is no such command."""
    if len(words) != len(line) or len(line) < 3:
        return None
    if _SSH.match(line[0].text):
        at = next((n for n, w in enumerate(words) if n and _names(w, loops)), 0)
    elif _MANY.match(line[0].text):
        at = next((n + 1 for n, w in enumerate(line[:-1]) if w.text == "-w"), 0)
        at = at if at and re.search(r"[,\[]", line[at].text) else 0
    else:
        return None
    if not at or at + 1 == len(line):
        return None
    told = [(w, v.origin) for w, v in zip(words[at + 1 :], line[at + 1 :], strict=True)]
    bare = [Value(w.shown(_nothing), w.origin(_nothing, o.file)) for w, o in told]
    host = loops.open[-1][0] if loops.open else ""
    alike = not any(p.text == host for w, _ in told for p in w.pieces if not p.literal)
    return OnEach(_one(line[at + 1 :]), _one(bare), alike)


def _one(words: Sequence[Value]) -> Value:
    """ssh puts its words together with blanks."""
    if len(words) == 1:
        return words[0]
    at = words[0].origin
    alone = Origin(file=at.file, line=at.line, column=at.column)
    return Value(" ".join(w.text for w in words), alone)


def _nothing(name: str) -> str | None:
    return None


def _names(word: Word, loops: Loops) -> bool:
    """Whether it is another host in each round of the innermost loop."""
    if not loops.open:
        return False
    name, values = loops.open[-1]
    several = len(set(values)) != 1
    return bool(name) and several and any(p.text == name for p in word.pieces if not p.literal)
