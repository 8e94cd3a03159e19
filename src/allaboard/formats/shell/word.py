"""One word of a shell command, as far as it is literal."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from allaboard.facts import OPAQUE, Origin, Part
from allaboard.facts.configuration.source_variables import SOURCE_VARIABLES
from allaboard.formats.source_map import position_after

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SLURM = SOURCE_VARIABLES["slurm"].fields
_TASK_NUMBERS = (*_SLURM["rank"], *_SLURM["node_rank"], *_SLURM["local_rank"])
"""What Slurm numbers a task by: another one in each task, and 0 in the batch script itself."""
_SHOWN_BY_NAME = (*_TASK_NUMBERS, "RANK", "NODE_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""What is shown by its name where its value is not known."""


def _marked_name(name: str) -> str:
    return f"{OPAQUE}{name}{OPAQUE}" if name in _SHOWN_BY_NAME else OPAQUE


_MAX_TEXT_LENGTH = 2**14
"""Characters of a text that is put together of variables."""
VariableLookup = Callable[[str], str | None]
"""The text of a variable by its name, None where it is not known."""


class Piece(NamedTuple):
    """Text as it stands (``literal``), the name of a variable, or a substitution, of which only a run could
    tell what it becomes: as it is written, or ""."""

    literal: bool
    text: str
    line: int
    column: int


@dataclass
class Word:
    """Pieces in order; ``array`` is set for ``"${NAME[@]}"``, which is several words."""

    line: int
    column: int
    pieces: list[Piece] = field(default_factory=list)
    quoted: bool = False
    array: bool = False

    @property
    def literal(self) -> str | None:
        """The text where nothing has to be expanded, else None."""
        return "".join(p.text for p in self.pieces) if all(p.literal for p in self.pieces) else None

    def expand(self, lookup: VariableLookup) -> str | None:
        """The text with the variables that are known; None where any part is not."""
        texts = [p.text if p.literal else lookup(p.text) for p in self.pieces]
        return None if None in texts else self._join_texts([t for t in texts if t is not None])

    def show_text(self, lookup: VariableLookup) -> str:
        """The text with OPAQUE in the place of every part that is not known; a few variables, as the number
        that Slurm gives a task, stand between two of them by their names."""
        text = self._join_texts([_shown_text(piece, lookup) for piece in self.pieces])
        return OPAQUE if text is None else text

    def text_origin(self, lookup: VariableLookup, file: str, variable: str = "") -> Origin:
        """Where the text that `shown` gives stands, part by part."""
        parts: list[Part] = []
        line = column = 1
        for piece in self.pieces:
            parts.append(Part(line, column, piece.line, piece.column, piece.literal))
            if piece is not self.pieces[-1]:
                line, column = position_after(_shown_text(piece, lookup), line, column)
        start = (parts[0].at_line, parts[0].at_column) if parts else (self.line, self.column)
        return Origin(
            variable=variable,
            file=file,
            line=start[0],
            column=start[1],
            parts=tuple(parts) if len(parts) > 1 or not all(p.literal for p in parts) else (),
        )

    def _join_texts(self, texts: list[str]) -> str | None:
        """One text; None where it is absurdly long: each variable may hold the one before it, twice."""
        if len(texts) == 1:
            return texts[0]
        is_too_long = sum(map(len, texts)) > _MAX_TEXT_LENGTH and self.literal is None
        return None if is_too_long else "".join(texts)

    def split_assignment(self) -> tuple[str, Word | None]:
        """The name and the value of ``NAME=value``; "" where the word is none."""
        if not self.pieces or not self.pieces[0].literal:
            return "", None
        first_piece = self.pieces[0]
        name, equals, value_text = first_piece.text.partition("=")
        if not equals or not NAME.fullmatch(name):
            return "", None
        value_piece = Piece(True, value_text, first_piece.line, first_piece.column + len(name) + 1)
        pieces = (
            [value_piece, *self.pieces[1:]]
            if value_text or len(self.pieces) == 1
            else self.pieces[1:]
        )
        value = Word(pieces[0].line, pieces[0].column, pieces, array=self.array)
        return name, value


def _shown_text(piece: Piece, lookup: VariableLookup) -> str:
    text = piece.text if piece.literal else lookup(piece.text)
    return _marked_name(piece.text) if text is None else text
