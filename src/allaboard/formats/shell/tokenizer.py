"""Splits shell text into simple commands of words, with positions.

The source is POSIX.1, Shell Command Language.

Known: quotes, escapes, line continuation, comments, here-documents, ``$NAME`` and ``${NAME}``,
``${NAME:-word}``. Everything else that only a shell could expand makes its word opaque.
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
    yield from _Splitter(text.replace("\r\n", "\n")).run()


def read_comments(text: str) -> list[tuple[int, str]]:
    """Return every comment with its line number. Lines of a here-document or of a string are no
    comments."""
    splitter = _Splitter(text)
    for _ in splitter.run():
        pass
    return splitter.comments


class _Splitter:
    def __init__(self, text: str, at: int = 0) -> None:
        self.text = text
        self.at = at
        self.line = 1
        self.start = 0
        self.words: list[Word] = []
        self.word: Word | None = None
        self.documents: list[str] = []
        self.depth = 0
        self.torn: list[TornLine] = []
        self.comments: list[tuple[int, str]] = []

    def run(self) -> Iterator[Command]:
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "&" and self.text.startswith("&>", self.at):
                self._end_word()
                self.at += 2
            elif char == "(" and self.word is not None and self._array():
                continue
            elif char == "\n" and self._goes_on():
                self._newline(self.at)
                self.at += 1
            elif char in _OPERATORS:
                yield from self._operator(char)
            elif char in " \t\r":
                self._end_word()
                self.at += 1
            elif char == "#" and self.word is None:
                self._comment()
            elif char in "<>":
                self._redirection(char)
            else:
                self._piece(char)
        self._end_word()
        yield from self._ended("")

    def _operator(self, char: str) -> Iterator[Command]:
        self._end_word()
        double = char in "&|;" and self.text.startswith(char * 2, self.at)
        yield from self._ended(char * 2 if double else char)
        if char == "\n":
            self._newline(self.at)
        self.depth = max(self.depth + {"(": 1, ")": -1}.get(char, 0), 0)
        self.at += 2 if double else 1
        if char == "\n" and self.documents:
            self._skip_documents()

    def _ended(self, operator: str) -> Iterator[Command]:
        if self.words:
            yield Command(self.words, operator, self.depth > 0, tuple(self.torn))
        self.words, self.torn = [], []

    def _goes_on(self) -> bool:
        """Whether the next line begins with an option: no command does."""
        self._end_word()
        if not self.words or self.documents or not is_option_next(self.text, self.at):
            return False
        if any(word.literal == "case" for word in self.words):  # a pattern stands there
            return False
        self._tear(self.at, "end")
        return True

    def _comment(self) -> None:
        end = comment_continuation_end(self.text, self.at) if self.words else 0
        if end:
            self._tear(self.at, "comment")
            self._lines(self.at, end)
            self.at = end
            return
        end = self.text.find("\n", self.at)
        end = len(self.text) if end < 0 else end
        self.comments.append((self.line, self.text[self.at : end]))
        self.at = end

    def _tear(self, at: int, why: str) -> None:
        self.torn.append(TornLine(self.line, at - self.start + 1, why))

    def _array(self) -> bool:
        """``NAME=( words )``, as one word with blanks between; False where it is no assignment."""
        word = self._current()
        if len(word.pieces) != 1 or not re.fullmatch(r"\w+\+?=", word.pieces[0].text):
            return False
        end = self._closing(self.at)
        inside = _Splitter(self.text[: end - 1], self.at + 1)
        inside.line, inside.start = self.line, self.start
        for command in inside.run():
            for part in command.words:
                word.pieces += [*part.pieces, self._piece_at(True, " ", end - 1)]
        self._lines(self.at, end)
        self.at = end
        word.array = True
        return True

    def _newline(self, at: int) -> None:
        self.line += 1
        self.start = at + 1

    def _current(self) -> Word:
        if self.word is None:
            self.word = Word(self.line, self.at - self.start + 1)
        return self.word

    def _end_word(self) -> None:
        if self.word is not None:
            self.words.append(self.word)
            self.word = None

    def _piece(self, char: str) -> None:
        word = self._current()
        if char == "\\":
            end = blank_continuation_end(self.text, self.at)
            if end:
                self._tear(self.at, "blank")
                self._newline(end - 1)
                self.at = end
                self.word = word if word.pieces else None
                self._end_word()
                return
            if self.text[self.at + 1 : self.at + 2] == "\n":
                self._newline(self.at + 1)
                self.word = word if word.pieces else None
            else:
                self._add(word, True, self.text[self.at + 1 : self.at + 2], self.at + 1)
            self.at += 2
        elif char == "'":
            word.quoted = True
            end = self.text.find("'", self.at + 1)
            end = len(self.text) if end < 0 else end
            self._literal(word, self.text[self.at + 1 : end], self.at + 1)
            self.at = end + 1
        elif char == '"':
            word.quoted = True
            self.at += 1
            self._double(word)
        elif char in "$`":
            self._expansion(word)
        else:
            match = _PLAIN_TEXT.match(self.text, self.at)
            end = match.end() if match else self.at + 1
            self._add(word, True, self.text[self.at : end], self.at)
            self.at = end

    def _literal(self, word: Word, text: str, at: int) -> None:
        self._add(word, True, text, at)
        last = text.rfind("\n")
        if last >= 0:
            self.line += text.count("\n")
            self.start = at + last + 1

    def _add(self, word: Word, literal: bool, text: str, at: int) -> None:
        word.pieces.append(self._piece_at(literal, text, at))

    def _piece_at(self, literal: bool, text: str, at: int) -> Piece:
        return Piece(literal, text, self.line, at - self.start + 1)

    def _double(self, word: Word) -> None:
        while self.at < len(self.text) and self.text[self.at] != '"':
            char = self.text[self.at]
            if char == "\\" and self.text[self.at + 1 : self.at + 2] in ("\\", '"', "$", "`", "\n"):
                escaped = self.text[self.at + 1]
                if escaped == "\n":
                    self._newline(self.at + 1)
                else:
                    self._add(word, True, escaped, self.at + 1)
                self.at += 2
            elif char in "$`":
                self._expansion(word)
            else:
                match = re.compile(r'[^"\\$`]+').match(self.text, self.at)
                end = match.end() if match else self.at + 1
                self._literal(word, self.text[self.at : end], self.at)
                self.at = end
        self.at += 1

    def _expansion(self, word: Word) -> None:
        text, at = self.text, self.at
        name = NAME.match(text, at + 1)
        if text[at] == "$" and name:
            self._add(word, False, name.group(), at)
            self.at = name.end()
            return
        opener = text[at + 1 : at + 2]
        braced = NAME.match(text, at + 2)
        if opener == "{" and braced and text[braced.end() : braced.end() + 1] == "}":
            self._add(word, False, braced.group(), at)
            self.at = braced.end() + 1
            return
        every = re.compile(r"\$\{(\w+)\[[@*]\]\}").match(text, at)
        if every:
            self._add(word, False, every.group(1), at)
            word.array = True
            self.at = every.end()
            return
        if text[at] == "$" and opener not in ("{", "("):
            known = not opener.strip()
            self._add(word, known, "$" if known else "", at)
            self.at += 1 if known else 2
            return
        end = self._closing(at)
        self._add(word, False, text[at:end], at)
        self._lines(at, end)
        self.at = end

    def _closing(self, at: int) -> int:
        """Where the substitution that begins here ends."""
        if self.text[at] == "`":
            end = self.text.find("`", at + 1)
            return len(self.text) if end < 0 else end + 1
        depth = 0
        for match in re.compile(r"[(){}]").finditer(self.text, at + 1):
            depth += 1 if match.group() in "({" else -1
            if depth <= 0:
                return match.end()
        return len(self.text)

    def _lines(self, at: int, end: int) -> None:
        count = self.text.count("\n", at, end)
        if count:
            self.line += count
            self.start = self.text.rfind("\n", at, end) + 1

    def _redirection(self, char: str) -> None:
        if self.text.startswith("<<", self.at) and not self.text.startswith("<<<", self.at):
            match = re.compile(r"<<-?\s*\\?(['\"]?)(\w+)\1").match(self.text, self.at)
            if match:
                self.documents.append(match.group(2))
                self.at = match.end()
                return
        if self.word is not None and (self.word.literal or "").isdigit():
            self.word = None  # 2>&1: the descriptor is no argument
        self._end_word()
        duplicate = _DUPLICATED_DESCRIPTOR.match(self.text, self.at)
        self.at = duplicate.end() if duplicate else self.at + 1

    def _skip_documents(self) -> None:
        for name in self.documents:
            end = re.compile(rf"^\t*{re.escape(name)}\s*$", re.M).search(self.text, self.at)
            stop = end.end() if end else len(self.text)
            self._lines(self.at, stop)
            self.at = stop
        self.documents = []
