"""Logs of one record a line, as structured loggers write them: messages and tracebacks as text. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from allaboard.formats.dumps.learned_prefixes import LOGGED_MARK
from allaboard.formats.dumps.python_tracebacks import TRACEBACK_HEAD
from allaboard.formats.dumps.structured_records import may_hold_records, readable_record

_ESCAPED_TRACEBACK = TRACEBACK_HEAD + r"\n"
_TEXT_KEYS = re.compile(r"msg|message|event|log|text(?:Payload)?|body", re.IGNORECASE)
"""Names that loggers give to what was logged."""


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
