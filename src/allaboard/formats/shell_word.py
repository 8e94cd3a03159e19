"""One word of a shell command, as far as it is literal."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from allaboard.facts import OPAQUE

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBERS = ("SLURM_PROCID", "SLURM_NODEID", "SLURM_LOCALID")
"""What Slurm numbers a task by: another one in each task, and 0 in the batch script itself."""


def _mark(name: str) -> str:
    return f"{OPAQUE}{name}{OPAQUE}" if name in _NUMBERS else OPAQUE


@dataclass
class Word:
    """Pieces in order: (True, text) literal, (False, NAME) a variable, (False, "") opaque;
    ``array`` is set for ``"${NAME[@]}"``, which is several words."""

    line: int
    column: int
    pieces: list[tuple[bool, str]] = field(default_factory=list)
    quoted: bool = False
    array: bool = False

    @property
    def literal(self) -> str | None:
        """The text where nothing has to be expanded, else None."""
        return "".join(t for _, t in self.pieces) if all(k for k, _ in self.pieces) else None

    def expand(self, known: Mapping[str, str], opaque: Set[str]) -> str | None:
        """The text with the variables that are known; None where any part is not."""
        texts = []
        for literal, text in self.pieces:
            if literal:
                texts.append(text)
            elif text in known and text not in opaque:
                texts.append(known[text])
            else:
                return None
        return "".join(texts)

    def shown(self, known: Mapping[str, str], opaque: Set[str]) -> str:
        """The text with OPAQUE in the place of every part that is not known; the number that Slurm
        gives a task stands between two of them by its name."""
        return "".join(
            text
            if literal
            else known[text]
            if text in known and text not in opaque
            else _mark(text)
            for literal, text in self.pieces
        )

    def assignment(self) -> tuple[str, Word | None]:
        """The name and the value of ``NAME=value``; "" where the word is none."""
        if not self.pieces or not self.pieces[0][0]:
            return "", None
        name, equals, rest = self.pieces[0][1].partition("=")
        if not equals or not NAME.fullmatch(name):
            return "", None
        column = self.column + len(name) + 1 + (1 if self.quoted else 0)
        value = Word(self.line, column, [(True, rest), *self.pieces[1:]], array=self.array)
        return name, value
