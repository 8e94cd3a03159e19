"""A piece of a script as people paste it into a question, made to parse, each line at its line.

A paste begins in the middle of a block, loses the first line's indentation, keeps prompts and fences, ends in
the middle of a statement, leaves out what is under a ``for``, or is written for Python 2. What cannot be
mended is blanked out, and the rest is still read.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from allaboard.formats.python.pieces.paste_marks import (
    has_fences,
    is_prose,
    without_diff,
    without_marks,
    without_prose,
)
from allaboard.formats.python_parser import parse_without_warnings

MAX_REPAIRS = 40
"""Lines that are mended in one text: each takes another parse."""
MAX_LEFT_OUT = 12
"""Lines at the begin of a difference that may belong to a statement which is not shown."""
MAX_NCHARS = 200_000
"""Length of a text that is mended at all; nobody pastes more."""
_MAX_BLANKED_SHARE = 0.2
"""Share of the lines that may be blanked out; a text with more is not Python."""
_FREE_BLANKED = 3
"""Lines that may be blanked out of even the shortest text."""
_LEAST_STEP = 2
"""Columns by which people indent a block at the least; one column is a slip."""
_PYTHON_2 = re.compile(r"(\s*)(?:print\b(?!\s*\()|exec\s+[\"'\w]|raise\s+\w+\s*,)")
_PYTHON_2_EXCEPT = re.compile(r"(\s*except\s+[\w.()]+)\s*,\s*(\w+)\s*:")
_HEADER = re.compile(
    r"\s*(?:async\s+)?(def|class|if|elif|else|for|while|with|try|except|finally)\b"
)
_CODE = re.compile(r"\s*[^\s#]")


@dataclass(frozen=True)
class Fragment:
    """A text that parses, made of one that does not."""

    text: str
    """As many lines as the original."""
    is_mere_paste: bool
    """True if Python would run the original: there were only the marks of a paste, and Python 2."""


def mend_fragment(text: str) -> Fragment | None:
    """Return the text made to parse; None if it is too long, or not Python enough."""
    if len(text) > MAX_NCHARS:
        return None
    lines = text.split("\n")
    mendings = [_Mending(lines)]
    # A difference begins where it likes: in the middle of a call, or of a docstring.
    if mendings[0].is_difference:
        mendings += [_Mending(lines, nleft_out) for nleft_out in range(1, MAX_LEFT_OUT + 1)]
    if has_fences(lines):
        mendings += [_Mending(without_prose(lines, begins)) for begins in (True, False)]
    mended = [m for m in mendings if m.run()]
    if not mended:
        return None
    best = min(mended, key=lambda m: m.nmended)
    is_mere_paste = (
        not best.has_errors
        or best.is_difference
        or (best.is_cut and (best.is_block or best.has_marks))
    )
    return Fragment("\n".join(best.lines), is_mere_paste)


class _Mending:
    """The lines of one text while they are mended, one parse error after the other."""

    def __init__(self, given_lines: list[str], nleft_out: int = 0) -> None:
        newer_lines = without_diff(given_lines)
        self.is_difference = newer_lines is not given_lines
        self.lines = [without_marks(line) for line in newer_lines]
        self.has_marks = self.lines != newer_lines or has_fences(given_lines)
        """True if it has marks that only a paste has."""
        self.lines[:nleft_out] = [""] * min(nleft_out, len(self.lines))
        self.is_block = False
        """True if it stands in a block that is not shown."""
        self.is_cut = False
        """True if nothing else is wrong than that the last statement ends too early."""
        self.nblanked = 0
        """Lines whose content is lost."""
        self.nmended = 0
        """Errors that were mended."""
        self.has_errors = False
        """True if the original would not run, however it was pasted."""

    def run(self) -> bool:
        """Mend until the text parses; return False if it never does."""
        ncode = sum(bool(_CODE.match(line)) for line in self.lines)
        limit = max(_FREE_BLANKED, int(_MAX_BLANKED_SHARE * ncode))
        self._indent_first_line()
        self.is_block = ncode > 0 and _first_is_indented(self.lines)
        for _ in range(MAX_REPAIRS):
            try:
                tree = self._parse()
            except SyntaxError as error:
                self._mend(error)
            except (ValueError, RecursionError, MemoryError):
                return False
            else:
                return bool(tree.body)
            if self.nblanked > limit:
                return False
        return False

    def _parse(self) -> ast.Module:
        """Return the tree. Of a block the error inside is raised, not that it is a block.

        Raises:
            SyntaxError, ValueError, RecursionError, MemoryError: it does not parse yet.
        """
        text = "\n".join(self.lines)
        if not self.is_block:
            return parse_without_warnings(text)
        try:
            return parse_without_warnings(f"if True:\n{text}")
        except SyntaxError as error:
            error.lineno = max((error.lineno or 1) - 1, 1)
            raise

    def _mend(self, error: SyntaxError) -> None:
        number = min(max(error.lineno or 1, 1), len(self.lines)) - 1
        message = error.msg or ""
        line = self.lines[number]
        self.nmended += 1
        if match := _PYTHON_2_EXCEPT.match(line):
            self.lines[number] = f"{match[1]} as {match[2]}:{line[match.end() :]}"
            return
        if match := _PYTHON_2.match(line):
            self.lines[number] = f"{match[1]}pass"
            return
        is_last = not any(_CODE.match(below) for below in self.lines[number + 1 :])
        if is_prose(line) and (is_last or self._code_before(number) < 0):
            self.lines[number] = ""
            self.has_marks = True
            return
        self.is_cut = (self.is_cut or not self.has_errors) and (
            "was never closed" in message or is_last
        )
        self.has_errors = True
        if message.startswith("expected an indented block"):
            self._fill_block(number)
        elif "does not match any outer indentation level" in message:
            self._move_to(number, self._nearest_level(number))
        elif message == "unexpected indent":
            self._move_to(number, self._indentation(self._code_before(number)))
        elif "expected 'except'" not in message or not self._open_try(number):
            self._blank_out(number)

    def _indent_first_line(self) -> None:
        """Give the first line the indentation that a selection with the mouse left out."""
        code = [n for n, line in enumerate(self.lines) if _CODE.match(line)]
        if len(code) < 2:
            return
        first, body = self.lines[code[0]], _indentation_of(self.lines[code[1]])
        least = min(_indentation_of(self.lines[n]) for n in code[1:])
        is_header = first.rstrip().endswith(":")
        if least > _indentation_of(first) and (not is_header or body - least >= _LEAST_STEP):
            self.lines[code[0]] = " " * least + first.lstrip()

    def _fill_block(self, number: int) -> None:
        """Put `pass` under the header that has nothing under it."""
        rest = any(_CODE.match(line) for line in self.lines[number + 1 :])
        header = number if not rest and self.lines[number].rstrip().endswith(":") else -1
        header = header if header >= 0 else self._code_before(number)
        if header < 0:
            self._blank_out(number)
            return
        code, mark, comment = self.lines[header].partition("#")
        if code.rstrip().endswith(":"):
            self.lines[header] = f"{code.rstrip()} pass  {mark}{comment}".rstrip()
        else:
            self.lines[header] += " pass"

    def _open_try(self, number: int) -> bool:
        """Make a plain block of the `try` without `except` before a line."""
        for n in range(number, -1, -1):
            if re.match(r"\s*try\s*:", self.lines[n]):
                self.lines[n] = re.sub(r"try\s*:", "if True:", self.lines[n], count=1)
                return True
        return False

    def _blank_out(self, number: int) -> None:
        """Replace a line by one that does nothing, and keep what is under it."""
        line = self.lines[number]
        indentation = line[: len(line) - len(line.lstrip())]
        below = next(
            (n for n in range(number + 1, len(self.lines)) if _CODE.match(self.lines[n])), -1
        )
        deeper = below >= 0 and _indentation_of(self.lines[below]) > _indentation_of(line)
        is_last = below < 0
        if not is_last and line.strip().strip("."):
            self.nblanked += 1
        header = _HEADER.match(line) is not None and deeper
        self.lines[number] = indentation + ("if True:" if header else "pass")

    def _move_to(self, number: int, indentation: int) -> None:
        """Move the block that begins at a line to an indentation."""
        current = _indentation_of(self.lines[number])
        shift = indentation - current
        for n in range(number, len(self.lines)):
            if not _CODE.match(self.lines[n]):
                continue
            own = _indentation_of(self.lines[n])
            if own < current or (shift > 0 and own != current):
                break
            self.lines[n] = " " * max(own + shift, 0) + self.lines[n].lstrip()

    def _nearest_level(self, number: int) -> int:
        """Return the indentation of an open block that is nearest to a line's."""
        own, levels, least = _indentation_of(self.lines[number]), [], None
        for n in range(number - 1, -1, -1):
            if _CODE.match(self.lines[n]):
                level = _indentation_of(self.lines[n])
                if least is None or level < least:
                    levels.append(level)
                    least = level
        return min(levels, key=lambda level: (abs(level - own), level), default=0)

    def _code_before(self, number: int) -> int:
        return next((n for n in range(number - 1, -1, -1) if _CODE.match(self.lines[n])), -1)

    def _indentation(self, number: int) -> int:
        return _indentation_of(self.lines[number]) if number >= 0 else 0


def _first_is_indented(lines: list[str]) -> bool:
    return next(line for line in lines if _CODE.match(line))[:1].isspace()


def _indentation_of(line: str) -> int:
    return len(line) - len(line.lstrip())
