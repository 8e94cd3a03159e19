"""Logs of JSON records, as structured loggers write them: messages and tracebacks as text. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from allaboard.formats.dumps.learned_prefixes import LOGGED_MARK
from allaboard.formats.dumps.python_tracebacks import TRACEBACK_HEAD
from allaboard.formats.dumps.structured_records import may_hold_records, readable_record
from allaboard.formats.dumps.wrapped_lines import JoinedLines

_ESCAPED_TRACEBACK = TRACEBACK_HEAD + r"\n"
_TEXT_KEYS = re.compile(r"msg|message|event|log|text(?:Payload)?|body", re.IGNORECASE)
"""Names that loggers give to what was logged."""
MAX_OBJECT_LINES = 2000
"""Lines of one object."""
MAX_OBJECTS = 1000
"""Objects of one text that are joined."""
_OPENS = re.compile(r"^(?P<prefix>[^\n{}\"]{0,200})\{[ \t\r]*$")
"""The first line of such an object, behind what a logger writes before it."""


def expand_json_lines(text: str) -> tuple[str, list[int]]:
    """Return the text with each record as the lines of its message, and the number of the line of each.

    A text without such records is returned as it is.
    """
    lines = text.split("\n")
    if not may_hold_records(text):
        return text, list(range(1, len(lines) + 1))
    expanded = [(n, part) for n, line in enumerate(lines, 1) for part in _message_lines(line)]
    return "\n".join(part for _, part in expanded), [number for number, _ in expanded]


def _message_lines(line: str) -> list[str]:
    """Return the lines of a record's message and of its traceback; the line itself if it is no record."""
    if _ESCAPED_TRACEBACK not in line or not line.startswith("{"):
        return (readable_record(line) or line).split("\n")
    try:
        record = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return [line]
    texts = dict.fromkeys(_texts(record)) if isinstance(record, dict) else ()
    return [part for text in texts for part in text.rstrip("\n").split("\n")] or [line]


def _texts(record: dict[str, object]) -> Iterator[str]:
    """Yield the message of a record, then its traceback, marked as a logger's."""
    values = [(k, v) for k, v in record.items() if isinstance(v, str)]
    nested = [v for v in record.values() if isinstance(v, dict)]
    yield from (v for k, v in values if _TEXT_KEYS.fullmatch(k) and TRACEBACK_HEAD not in v)
    for _, value in values:
        head, mark, traceback = value.partition(TRACEBACK_HEAD)
        if mark:
            yield f"{head.rstrip()}\n{LOGGED_MARK}{mark}{traceback}".lstrip("\n")
    for inner in nested:
        yield from _texts(inner)


def join_spread_objects(text: str) -> JoinedLines | None:
    """Return the text with each JSON object that holds a traceback on one line; None if all are.

    Torchelastic's error handler logs a failure as an object over several lines.
    """
    if TRACEBACK_HEAD not in text or "{\n" not in text.replace("\r", ""):
        return None
    lines = text.split("\n")
    ends = _object_ends(lines)
    joined: list[str] = []
    numbers: list[int] = []
    objects = position = 0
    while position < len(lines):
        opening = _OPENS.match(lines[position]) if objects < MAX_OBJECTS else None
        end = ends.get(position, 0)
        written = _object_text(lines[position:end], opening.end("prefix")) if opening else ""
        if opening is None or not written:
            joined.append(lines[position])
            numbers.append(position + 1)
            position += 1
            continue
        parts = [opening["prefix"].rstrip(), written]
        joined += parts
        numbers += [position + 1] * len(parts)
        position, objects = end, objects + 1
    return JoinedLines("\n".join(joined), tuple(numbers)) if objects else None


def _object_ends(lines: list[str]) -> dict[int, int]:
    """Return the position behind the last line of what may be an object, by that of its first line: the
    next "}" that is indented alike, and that no later line has opened."""
    ends: dict[int, int] = {}
    next_closing: dict[int, int] = {}
    # From the end: each line is looked at once, however many objects are left open.
    for position in range(len(lines) - 1, -1, -1):
        line = lines[position]
        indent = len(line) - len(line.lstrip())
        if indent in next_closing and _OPENS.match(line):
            closing = next_closing.pop(indent)
            if closing - position < MAX_OBJECT_LINES:
                ends[position] = closing + 1
        if line.rstrip(" ,\r") == " " * indent + "}":
            next_closing[indent] = position
    return ends


def _object_text(lines: list[str], column: int) -> str:
    """Return the object that begins at a column of the first line, on one line; "" if it is none with a
    traceback."""
    whole = "\n".join(lines)[column:].rstrip(" ,\r")
    if TRACEBACK_HEAD not in whole:
        return ""
    try:
        return msgspec.json.format(whole, indent=-1)
    except (msgspec.DecodeError, RecursionError):
        return ""
