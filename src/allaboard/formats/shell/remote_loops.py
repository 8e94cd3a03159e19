"""Commands that a script runs on several hosts: ``for h in …; do ssh $h '…'``, ``pdsh -w … '…'``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from allaboard.facts import Origin, Value
from allaboard.formats.shell.loops import OpenLoops
from allaboard.formats.shell.word import Word

_SSH = re.compile(r"(?:.*/)?ssh\Z")
_PARALLEL_SHELL = re.compile(r"(?:.*/)?(?:pdsh|clush)\Z")


class RemoteCommand(NamedTuple):
    """The script that a command hands to each of several hosts."""

    first_round: Value
    """The script with the variables of the first round."""
    without_variables: Value
    """The script with no variable expanded, because a later round may have changed them."""
    host_independent: bool
    """True if nothing in the script depends on the host."""


def find_remote_command(
    words: Sequence[Word], values: Sequence[Value], loops: OpenLoops
) -> RemoteCommand | None:
    """Return the script that the command runs on several hosts, or None if it is no such command."""
    if len(words) != len(values) or len(values) < 3:
        return None
    if _SSH.match(values[0].text):
        index = next((n for n, w in enumerate(words) if n and _varies_by_round(w, loops)), 0)
    elif _PARALLEL_SHELL.match(values[0].text):
        index = next((n + 1 for n, w in enumerate(values[:-1]) if w.text == "-w"), 0)
        index = index if index and re.search(r"[,\[]", values[index].text) else 0
    else:
        return None
    if not index or index + 1 == len(values):
        return None
    placed_words = [
        (w, v.origin) for w, v in zip(words[index + 1 :], values[index + 1 :], strict=True)
    ]
    bare_words = [
        Value(w.show_text(_no_value), w.text_origin(_no_value, o.file)) for w, o in placed_words
    ]
    host = loops.open[-1][0] if loops.open else ""
    host_independent = not any(
        p.text == host for w, _ in placed_words for p in w.pieces if not p.literal
    )
    return RemoteCommand(
        _join_words(values[index + 1 :]), _join_words(bare_words), host_independent
    )


def _join_words(words: Sequence[Value]) -> Value:
    """Join the words with blanks, as ssh does."""
    if len(words) == 1:
        return words[0]
    origin = words[0].origin
    joined_origin = Origin(file=origin.file, line=origin.line, column=origin.column)
    return Value(" ".join(w.text for w in words), joined_origin)


def _no_value(name: str) -> str | None:
    return None


def _varies_by_round(word: Word, loops: OpenLoops) -> bool:
    """Return True if the word names another host in each round of the innermost loop."""
    if not loops.open:
        return False
    name, values = loops.open[-1]
    differs = len(set(values)) != 1
    return bool(name) and differs and any(p.text == name for p in word.pieces if not p.literal)
