"""Simple commands of a shell script, with the position of every word.

The source is POSIX.1, Shell Command Language. The following is read: quotes, escapes, line
continuation, comments, here-documents, ``$NAME``, ``${NAME}``, ``${NAME:-word}`` and arrays. A word
with anything else that only a shell can expand is opaque.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from allaboard.formats.shell.broken_continuations import (
    TornLine,
    blank_continuation_end,
    comment_continuation_end,
    is_option_next,
)
from allaboard.formats.shell.word import NAME, Piece, Word

_OPERATORS = ";&|\n()"
_DUPLICATED_DESCRIPTOR = re.compile(r"[<>]&\s*[0-9-]+")
_SPECIAL_PARAMETER = re.compile(r"[0-9?!@#*$-]")
_PLAIN_TEXT = re.compile(r"[^\\'\"$`\s;&|()<>#]+")


@dataclass
class Command:
    """A simple command."""

    words: list[Word]
    """Words in order, without redirections; the files that they name are words."""
    terminator: str = ""
    """The operator that ends the command, or "" at the end of the text."""
    in_parentheses: bool = False
    """True if the command stands in parentheses."""
    torn_lines: tuple[TornLine, ...] = ()
    """Line ends of the command that should join two lines, but do not. The command is read as it
    was meant."""
    is_background: bool = False
    """True if the next command runs concurrently; set by `resolve_lists`."""
    is_conditional: bool = False
    """True if another command decides if this one runs; set by `resolve_lists`."""


def read_commands(text: str) -> Iterator[Command]:
    """Yield every simple command in the order of the text."""
    yield from _Splitter(text.replace("\r\n", "\n")).split_commands()


def read_comments(text: str) -> list[tuple[int, str]]:
    """Return every comment with its line number. Lines of a here-document or of a string are no
    comments."""
    splitter = _Splitter(text)
    for _ in splitter.split_commands():
        pass
    return splitter.comments


class _Splitter:
    """One pass over the text, from left to right.

    It is used in place of a full grammar: tree-sitter-bash reads the same scripts alike, but
    recovers from syntax errors in quadratic time and memory (60 kB of ``esac|``: 3 s, 1.6 GB), and
    takes three times as long for valid ones.
    """

    def __init__(self, text: str, offset: int = 0, *, in_array: bool = False) -> None:
        self.text = text
        self.in_array = in_array
        self.offset = offset
        self.line = 1
        self.line_start = 0
        self.words: list[Word] = []
        self.word: Word | None = None
        self.pending_documents: list[str] = []
        self.depth = 0
        self.torn_lines: list[TornLine] = []
        self.comments: list[tuple[int, str]] = []

    def split_commands(self) -> Iterator[Command]:
        while self.offset < len(self.text):
            char = self.text[self.offset]
            if char == "&" and self.text.startswith("&>", self.offset):
                # A redirection, which does not send the command to the background.
                self._end_word()
                self.offset += 2
            elif char == "(" and self.word is not None and self._read_array():
                continue
            elif char == "\n" and self._joins_option_line():
                self._begin_line(self.offset)
                self.offset += 1
            elif char in _OPERATORS:
                yield from self._read_operator(char)
            elif char in " \t\r":
                self._end_word()
                self.offset += 1
            elif char == "#" and self.word is None:
                self._read_comment()
            elif char in "<>":
                self._read_redirection()
            else:
                self._read_piece(char)
        self._end_word()
        yield from self._end_command("")

    def _read_operator(self, char: str) -> Iterator[Command]:
        self._end_word()
        double = char in "&|;" and self.text.startswith(char * 2, self.offset)
        yield from self._end_command(char * 2 if double else char)
        if char == "\n":
            self._begin_line(self.offset)
        self.depth = max(self.depth + {"(": 1, ")": -1}.get(char, 0), 0)
        self.offset += 2 if double else 1
        if char == "\n" and self.pending_documents:
            self._skip_documents()

    def _end_command(self, operator: str) -> Iterator[Command]:
        if self.words:
            yield Command(self.words, operator, self.depth > 0, tuple(self.torn_lines))
        self.words, self.torn_lines = [], []

    def _joins_option_line(self) -> bool:
        """Return True if the next line begins with an option, as no command does, and so belongs to
        this command."""
        self._end_word()
        if not self.words or self.pending_documents or not is_option_next(self.text, self.offset):
            return False
        if any(word.literal == "case" for word in self.words):  # a pattern stands there
            return False
        self._tear(self.offset, "end")
        return True

    def _read_comment(self) -> None:
        end = comment_continuation_end(self.text, self.offset) if self.words else 0
        if end:
            self._tear(self.offset, "comment")
            self._count_lines(self.offset, end)
            self.offset = end
            return
        end = self.text.find("\n", self.offset)
        end = len(self.text) if end < 0 else end
        self.comments.append((self.line, self.text[self.offset : end]))
        self.offset = end

    def _tear(self, offset: int, reason: str) -> None:
        self.torn_lines.append(TornLine(self.line, offset - self.line_start + 1, reason))

    def _read_array(self) -> bool:
        """Read ``NAME=( words )`` as one word with blanks between, and return False if it is no
        assignment."""
        word = self._current_word()
        # An array holds no arrays; so the depth of this recursion is bounded.
        if (
            self.in_array
            or len(word.pieces) != 1
            or not re.fullmatch(r"\w+\+?=", word.pieces[0].text)
        ):
            return False
        end = self._closing_offset(self.offset - 1)
        # The slice keeps the offsets of this text, and so the positions.
        array_splitter = _Splitter(self.text[: end - 1], self.offset + 1, in_array=True)
        array_splitter.line, array_splitter.line_start = self.line, self.line_start
        for command in array_splitter.split_commands():
            for array_word in command.words:
                word.pieces += [*array_word.pieces, self._piece_at(True, " ", end - 1)]
        self._count_lines(self.offset, end)
        self.offset = end
        word.array = True
        return True

    def _begin_line(self, offset: int) -> None:
        self.line += 1
        self.line_start = offset + 1

    def _current_word(self) -> Word:
        if self.word is None:
            self.word = Word(self.line, self.offset - self.line_start + 1)
        return self.word

    def _end_word(self) -> None:
        if self.word is not None:
            self.words.append(self.word)
            self.word = None

    def _read_piece(self, char: str) -> None:
        word = self._current_word()
        if char == "\\":
            end = blank_continuation_end(self.text, self.offset)
            if end:
                has_remark = "#" in self.text[self.offset : end]
                self._tear(self.offset, "remark" if has_remark else "blank")
                self._begin_line(end - 1)
                self.offset = end
                self.word = word if word.pieces else None
                self._end_word()
                return
            if self.text[self.offset + 1 : self.offset + 2] == "\n":
                # A word that has no piece yet begins in the next line.
                self._begin_line(self.offset + 1)
                self.word = word if word.pieces else None
            else:
                self._add_piece(
                    word, True, self.text[self.offset + 1 : self.offset + 2], self.offset + 1
                )
            self.offset += 2
        elif char == "'":
            word.quoted = True
            end = self.text.find("'", self.offset + 1)
            end = len(self.text) if end < 0 else end
            self._add_literal(word, self.text[self.offset + 1 : end], self.offset + 1)
            self.offset = end + 1
        elif char == '"':
            word.quoted = True
            self.offset += 1
            self._read_double_quoted(word)
        elif char in "$`":
            self._read_expansion(word)
        else:
            match = _PLAIN_TEXT.match(self.text, self.offset)
            end = match.end() if match else self.offset + 1
            self._add_piece(word, True, self.text[self.offset : end], self.offset)
            self.offset = end

    def _add_literal(self, word: Word, text: str, offset: int) -> None:
        self._add_piece(word, True, text, offset)
        last_line_end = text.rfind("\n")
        if last_line_end >= 0:
            self.line += text.count("\n")
            self.line_start = offset + last_line_end + 1

    def _add_piece(self, word: Word, literal: bool, text: str, offset: int) -> None:
        word.pieces.append(self._piece_at(literal, text, offset))

    def _piece_at(self, literal: bool, text: str, offset: int) -> Piece:
        return Piece(literal, text, self.line, offset - self.line_start + 1)

    def _read_double_quoted(self, word: Word) -> None:
        while self.offset < len(self.text) and self.text[self.offset] != '"':
            char = self.text[self.offset]
            escaped = self.text[self.offset + 1 : self.offset + 2]
            # Within double quotes, a backslash before any other character stands for itself.
            if char == "\\" and escaped in ("\\", '"', "$", "`", "\n"):
                if escaped == "\n":
                    self._begin_line(self.offset + 1)
                else:
                    self._add_piece(word, True, escaped, self.offset + 1)
                self.offset += 2
            elif char in "$`":
                self._read_expansion(word, in_double_quotes=True)
            else:
                match = re.compile(r'[^"\\$`]+').match(self.text, self.offset)
                end = match.end() if match else self.offset + 1
                self._add_literal(word, self.text[self.offset : end], self.offset)
                self.offset = end
        self.offset += 1

    def _read_expansion(self, word: Word, *, in_double_quotes: bool = False) -> None:
        text, offset = self.text, self.offset
        name = NAME.match(text, offset + 1)
        if text[offset] == "$" and name:
            self._add_piece(word, False, name.group(), offset)
            self.offset = name.end()
            return
        opener = text[offset + 1 : offset + 2]
        braced = NAME.match(text, offset + 2)
        if opener == "{" and braced and text[braced.end() : braced.end() + 1] == "}":
            self._add_piece(word, False, braced.group(), offset)
            self.offset = braced.end() + 1
            return
        whole_array = re.compile(r"\$\{(\w+)\[[@*]\]\}").match(text, offset)
        if whole_array:
            self._add_piece(word, False, whole_array.group(1), offset)
            word.array = True
            self.offset = whole_array.end()
            return
        if text[offset] == "$" and opener not in ("{", "("):
            # $1, $? and their like have no name to look up, and $'\n' is not decoded; any other
            # "$" stands for itself.
            is_quoting = opener in ("'", '"') and not in_double_quotes
            is_literal = not is_quoting and not _SPECIAL_PARAMETER.match(text, offset + 1)
            self._add_piece(word, is_literal, "$" if is_literal else "", offset)
            self.offset += 1 if is_literal or is_quoting else 2
            return
        end = self._closing_offset(offset)
        self._add_piece(word, False, text[offset:end], offset)
        self._count_lines(offset, end)
        self.offset = end

    def _closing_offset(self, offset: int) -> int:
        """Return the offset after the substitution that begins at the offset.

        Only brackets are counted, also those in quotes.
        """
        if self.text[offset] == "`":
            end = self.text.find("`", offset + 1)
            return len(self.text) if end < 0 else end + 1
        depth = 0
        for match in re.compile(r"[(){}]").finditer(self.text, offset + 1):
            depth += 1 if match.group() in "({" else -1
            if depth <= 0:
                return match.end()
        return len(self.text)

    def _count_lines(self, offset: int, end: int) -> None:
        count = self.text.count("\n", offset, end)
        if count:
            self.line += count
            self.line_start = self.text.rfind("\n", offset, end) + 1

    def _read_redirection(self) -> None:
        if self.text.startswith("<<", self.offset) and not self.text.startswith("<<<", self.offset):
            match = re.compile(r"<<-?\s*\\?(['\"]?)(\w+)\1").match(self.text, self.offset)
            if match:
                self.pending_documents.append(match.group(2))
                self.offset = match.end()
                return
        if self.word is not None and (self.word.literal or "").isdecimal():
            self.word = None  # 2>&1: the descriptor is no argument
        self._end_word()
        duplicate = _DUPLICATED_DESCRIPTOR.match(self.text, self.offset)
        if duplicate:
            self.offset = duplicate.end()
        else:
            # ">& file" and ">| file": neither "&" nor "|" is an operator here.
            self.offset += 2 if self.text[self.offset + 1 : self.offset + 2] in ("&", "|") else 1

    def _skip_documents(self) -> None:
        for name in self.pending_documents:
            # "<<-" removes tabs at the beginning of the line; "<<" does not, and no one ends it so.
            end = re.compile(rf"^\t*{re.escape(name)}\s*$", re.M).search(self.text, self.offset)
            stop = end.end() if end else len(self.text)
            self._count_lines(self.offset, stop)
            self.offset = stop
        self.pending_documents = []
