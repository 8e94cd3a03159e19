"""Names of the variables that a command of a shell script uses and changes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from allaboard.formats.shell.word import NAME, Word

_CHANGED_NAME = re.compile(
    r"(?:\+\+|--)?([A-Za-z_]\w*)(?:\[.*)?(?:\+\+|--|[-+*/%]?=.*)?\Z", re.DOTALL
)
_COUNTING = re.compile(r"(?:\+\+|--)[A-Za-z_]\w*\Z|[A-Za-z_]\w*(?:\+\+|--|[-+*/%]=.*)\Z", re.DOTALL)
_ELEMENT = re.compile(r"([A-Za-z_]\w*)\[")
_READERS = frozenset(["read", "let", "mapfile", "readarray", "getopts", "unset"])
"""Builtins of the shell that change the variables whose names are their arguments."""


def used_names(words: Sequence[Word]) -> frozenset[str]:
    """Return the names of the variables in the words."""
    return frozenset(p.text for w in words for p in w.pieces if not p.literal and p.text)


def changed_names(words: Sequence[Word]) -> frozenset[str]:
    """Return the names that the command assigns, increments, appends to or reads."""
    names = [word.split_assignment()[0] for word in words]
    changed_variables = {name for name in names if name}
    if changes_variables(words):
        beginning = _literal_beginning(words[0])
        element = _ELEMENT.match(beginning)
        arguments = words[1:] if beginning in _READERS else words[:1]
        changed_variables |= {
            m[1] for m in (_CHANGED_NAME.match(_literal_beginning(w)) for w in arguments) if m
        }
        changed_variables |= {element[1]} if element else set()
    return frozenset(changed_variables)


def changes_variables(words: Sequence[Word]) -> bool:
    """Return True if the command runs no program and is more than a plain assignment: ``((N++))``,
    ``let N+=1``, ``read N``, ``LIST+=(more)``, ``PIDS[0]=$!``."""
    beginning = _literal_beginning(words[0])
    if beginning in _READERS or _COUNTING.match(beginning):
        return True
    if (
        len(words) > 1
        and NAME.fullmatch(beginning)
        and _literal_beginning(words[1]) in ("=", "+=", "-=")
    ):
        return True  # ((N = N + 1))
    return _ELEMENT.match(beginning) is not None and any("]=" in p.text for p in words[0].pieces)


def _literal_beginning(word: Word) -> str:
    """Return the first piece of the word if it is literal, else ""."""
    return word.pieces[0].text if word.pieces and word.pieces[0].literal else ""
