"""Loops over literal words, ``for NAME in WORDS; do …; done``, and the value of NAME in each round."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping

from allaboard.formats.shell.word import Word

_RANGE = re.compile(r"\{([0-9]{1,4})\.\.([0-9]{1,4})\}\Z")
_SEQ = re.compile(r"(?:\$\(|`)\s*seq\s+(?:(?P<first>[0-9]{1,4})\s+)?(?P<last>[0-9]{1,4})\s*[)`]\Z")
_MAX_ROUNDS = 256
"""Maximum number of rounds that are examined. No script starts more processes on its own host."""


class OpenLoops:
    """The loops that are open at the current command, innermost last: the name of the variable and
    its values."""

    def __init__(self) -> None:
        self.open: list[tuple[str, list[str]]] = []

    def enter_command(self, words: list[Word]) -> list[Word]:
        """Note the beginning or the end of a loop. Return the words of the command that do not
        belong to the loop itself."""
        keyword = words[0].literal
        if keyword == "for" and len(words) > 2 and words[2].literal == "in":
            values_by_word = [_literal_values(word) for word in words[3:]]
            values = (
                [v for word_values in values_by_word for v in word_values]
                if all(values_by_word)
                else []
            )
            self.open.append((words[1].literal or "", values))
            return []
        if keyword in ("for", "while", "until", "select"):
            self.open.append(("", []))
        if keyword == "done" and self.open:
            self.open.pop()
            return []
        return words

    def iterate_rounds(self) -> Iterator[Mapping[str, str]]:
        """Yield the loop variables of each round, or one empty mapping if an open loop is not
        literal."""
        if not self.open or any(not name or not values for name, values in self.open):
            yield {}
            return
        names = [name for name, _ in self.open]
        product = itertools.product(*(values for _, values in self.open))
        for round_ in itertools.islice(product, _MAX_ROUNDS):
            yield dict(zip(names, round_, strict=True))


def _literal_values(word: Word) -> list[str]:
    """Return the values that the word expands to, or an empty list if only a run could tell."""
    if word.literal is None:
        return _seq_values(word)
    match = _RANGE.match(word.literal)
    if match is None:
        return [word.literal]
    begin, end = int(match[1]), int(match[2])
    step = 1 if end >= begin else -1
    return [str(n) for n in range(begin, end + step, step)][:_MAX_ROUNDS]


def _seq_values(word: Word) -> list[str]:
    """Return the numbers of ``$(seq FIRST LAST)``; FIRST is 1 by default (seq(1))."""
    match = _SEQ.match(word.pieces[0].text) if len(word.pieces) == 1 and not word.quoted else None
    if match is None:
        return []
    begin, end = int(match["first"] or 1), int(match["last"])
    return [str(n) for n in range(begin, end + 1)][:_MAX_ROUNDS]
