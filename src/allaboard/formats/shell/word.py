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
TASK_NUMBERS = (*_SLURM["rank"], *_SLURM["node_rank"], *_SLURM["local_rank"])
"""Variables by which Slurm numbers a task: they differ between tasks, and are 0 in the batch script
itself."""
_SHOWN_BY_NAME = (
    *TASK_NUMBERS,
    "RANK",
    "NODE_RANK",
    "WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "SLURM_LAUNCH_NODE_IPADDR",
    "SLURM_SRUN_COMM_HOST",
    "SLURM_SUBMIT_HOST",
)
"""Variables that are shown by name if their value is not known."""


_DEFAULTED_NAME = re.compile(
    r"\$\{(?P<name>\w+):?[-=?][^{}$]*\}|\$\(\(\s*\$?\{?(?P<name2>\w+)\}?\s*\)\)"
)
"""Matches ``${NAME:-0}`` and ``$((NAME))``, which are a variable as it is, once that is set."""


def _marked_name(expansion: str) -> str:
    match = _DEFAULTED_NAME.fullmatch(expansion)
    name = match["name"] or match["name2"] if match else ""
    if name in TASK_NUMBERS:  # Slurm sets them always
        return f"{OPAQUE}{name}{OPAQUE}"
    return f"{OPAQUE}{expansion}{OPAQUE}" if expansion in _SHOWN_BY_NAME else OPAQUE


_MAX_TEXT_LENGTH = 2**14
"""Maximum number of characters of a text that is composed of variables."""
VariableLookup = Callable[[str], str | None]
"""Function that returns the text of a variable, or None if it is not known."""


class Piece(NamedTuple):
    """A part of a word: literal text, a variable, or another expansion."""

    literal: bool
    """True if ``text`` stands for itself."""
    text: str
    """Literal text, the name of a variable, or an expansion that only a run could evaluate, as
    written or ""."""
    line: int
    """Line, from 1."""
    column: int
    """Column in characters, from 1."""


@dataclass
class Word:
    """A word of a command: its pieces in order."""

    line: int
    """Line, from 1."""
    column: int
    """Column in characters, from 1."""
    pieces: list[Piece] = field(default_factory=list)
    """Pieces in order."""
    quoted: bool = False
    """True if any part is in quotes."""
    array: bool = False
    """True for ``"${NAME[@]}"`` and ``NAME=(…)``, which are several words."""

    @property
    def literal(self) -> str | None:
        """The text if it needs no expansion, else None."""
        return "".join(p.text for p in self.pieces) if all(p.literal for p in self.pieces) else None

    def expand(self, lookup: VariableLookup) -> str | None:
        """Return the text with its variables replaced, or None if any part is not known."""
        texts = [p.text if p.literal else lookup(p.text) for p in self.pieces]
        return None if None in texts else self._join_texts([t for t in texts if t is not None])

    def show_text(self, lookup: VariableLookup) -> str:
        """Return the text with OPAQUE in place of every part that is not known.

        A few variables, such as Slurm's number of a task, stand between two OPAQUE by their names.
        """
        text = self._join_texts([_shown_text(piece, lookup) for piece in self.pieces])
        return OPAQUE if text is None else text

    def text_origin(self, lookup: VariableLookup, file: str, variable: str = "") -> Origin:
        """Return the position of the text that `show_text` returns, part by part."""
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
        """Return the joined texts, or None if they are too long: each variable may contain the
        previous one twice."""
        if len(texts) == 1:
            return texts[0]
        is_too_long = sum(map(len, texts)) > _MAX_TEXT_LENGTH and self.literal is None
        return None if is_too_long else "".join(texts)

    def split_assignment(self) -> tuple[str, Word | None]:
        """Return name and value of ``NAME=value``, or "" and None if the word is no assignment."""
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
