"""Prefixes of any logger or collector, learned from the messages of several lines after them. Pure.

A traceback is one message. If the same text, but for its numbers, stands before its head and before the lines
that follow it, that text is not part of the traceback: a logger wrote it before every line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

MAX_PREFIX_CHARS = 200
"""Characters of the longest prefix that is learned."""
MAX_LINES_BETWEEN = 60
"""Lines of other processes that may stand between two lines of one message."""
MAX_FORMS = 64
"""Different prefixes that are learned of one file."""
_ANCHORS = (
    # A text in the head of a message of several lines, and how one of its next lines begins.
    ("Traceback (most recent call last):", r'  File "'),
    ('  File "', r'(?:  File "|(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): \S)'),
    ("╭──", "│ "),
    ("Python v3.", r"Thread \S+ \("),  # of py-spy
    ("Exception raised from ", r"frame #0: "),
    ("Root Cause (first observed failure):", r"  time      : "),
    *((f"{code}: ", r"RPC: /") for code in ("DEADLINE_EXCEEDED", "UNAVAILABLE", "ABORTED")),
)
_TORCH_RANK = re.compile(r"\[rank\d{1,7}\]:")
_LEVEL = r"(?i:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|EXCEPTION|FATAL|SUCCESS)"
LOGGED_MARK = "(logged) "
"""Stands before the head of a traceback that a logger's prefix calls an error: it may have been caught."""
_ERROR_LEVEL = re.compile(r"\b(?:WARN(?:ING)?|ERROR|CRITICAL|EXCEPTION)\b", re.IGNORECASE)
_TOKENS = re.compile(
    rf"(?P<level>\b{_LEVEL}\b)"
    r"|(?P<pid>\b[pP][iI][dD][ =:]{1,2}(?=\d))(?P<pid_number>\d{1,9})\b"
    r"|(?P<local>\b[lL](?:OCAL|ocal)[ _-]?[rR](?:ANK|ank)[ =:_#-]{0,2}(?=\d))(?P<local_number>\d{1,7})\b"
    r"|(?P<rank>(?<![A-Za-z])(?:[gG](?:LOBAL|lobal)[ _-]?)?[rR](?:ANK|ank)[ =:_#-]{0,2}(?=\d))"
    r"(?P<rank_number>\d{1,7})\b"
    r"|(?P<code>[^\s\[\](){}|<>]*[A-Za-z_>][^\s\[\](){}|<>]*:\d+)"  # file.py:12, module:function:12
    r"|(?P<space> +)|(?P<number>\d+)"
)
_SOURCE = re.compile(
    r"(?<![\w./:-])(?!\w*[Tt]hread|asyncio)(?:\d{1,3}(?:\.\d{1,3}){3}|[A-Za-z][A-Za-z0-9.]*(?:[-_][\w.-]*)?\d"
    r"|[a-z][a-z0-9]*(?:-[a-z0-9]+){2,})(?![\w./-]|:\d)"
)
"""Matches what may name a process in a prefix: an address, or a name with a number, as a pod or host has."""
_CLOCK = re.compile(r"\d{4}-\d\d-\d\dT?|\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?|T\d\d\b")


class LearnedPrefix(NamedTuple):
    """One prefix of a logger."""

    pattern: re.Pattern[str]
    """Matches it, with any numbers, levels and places in the logger's code; the groups ``rank``, ``local``
    and ``pid`` are the numbers that it calls so."""


def learn_prefixes(text: str, lines: Sequence[str]) -> list[LearnedPrefix]:
    """Return the prefixes that stand before messages of several lines, the longest first.

    ``lines`` are those of the text, or what is left of them.
    """
    sources: dict[str, str] = {}
    for key, following in _ANCHORS:
        heads = [n for n, line in enumerate(lines) if key in line] if key in text else []
        next_line = re.compile(rf"(?:{_TORCH_RANK.pattern} ?)?{following}")
        for number in heads:
            prefix = _without_torch_rank(lines[number].partition(key)[0])
            if not prefix.strip("│ \t") or len(prefix) > MAX_PREFIX_CHARS:
                continue  # the edge of a box around another one
            pattern = _pattern_of(prefix)
            if pattern not in sources and _is_followed(lines, number, pattern, next_line):
                sources[pattern] = prefix
            if len(sources) >= MAX_FORMS:
                break
    ordered = sorted(sources, key=lambda p: -len(sources[p]))
    return [LearnedPrefix(re.compile(p)) for p in ordered]


def without_prefix(line: str, match: re.Match[str]) -> str:
    """Return the line without the prefix, and with a mark if the prefix says that an error was logged."""
    rest_of_line = line[match.end() :]
    is_head = rest_of_line.startswith(_ANCHORS[0][0]) and _ERROR_LEVEL.search(match[0])
    return LOGGED_MARK + rest_of_line if is_head else rest_of_line


def sources_of(prefixes: Iterable[str]) -> dict[str, str]:
    """Return what names the process in each prefix, if that tells several processes apart; else {}."""
    named = {prefix: _source_of(prefix) for prefix in prefixes}
    return named if len(set(named.values())) > 1 else {}


def _source_of(prefix: str) -> str:
    match = _SOURCE.search(_CLOCK.sub(" ", prefix))
    return match[0] if match is not None else ""


def _without_torch_rank(prefix: str) -> str:
    """Return the prefix without torch's own, which stays in the line."""
    match = _TORCH_RANK.search(prefix)
    return prefix[: match.start()] if match is not None else prefix


def _is_followed(
    lines: Sequence[str], number: int, pattern: str, next_line: re.Pattern[str]
) -> bool:
    """Return True if a line soon after this one has the same prefix before its own text."""
    prefix = re.compile(pattern)
    for line in lines[number + 1 : number + 1 + MAX_LINES_BETWEEN]:
        match = prefix.match(line)
        if match is not None and next_line.match(line, match.end()):
            return True
    return False


def _pattern_of(prefix: str) -> str:
    """Return the pattern of a prefix; what is after its last blank may be nothing."""
    text = prefix.rstrip(" ")
    blanks = len(prefix) - len(text)
    return "".join(_pattern_parts(text)) + (rf"(?: {{{blanks}}}| *$)" if blanks else "")


def _pattern_parts(prefix: str) -> Iterator[str]:
    """Yield the prefix as a regular expression, in which everything that changes from line to line may."""
    position = 0
    named: set[str] = set()
    for match in _TOKENS.finditer(prefix):
        yield re.escape(prefix[position : match.start()])
        position = match.end()
        kind = match.lastgroup or ""
        kind = kind.removesuffix("_number")
        if kind in ("pid", "local", "rank"):
            yield re.escape(match[kind])
            yield r"\d+" if kind in named else rf"(?P<{kind}>\d+)"
            named.add(kind)
        elif kind == "level":
            yield _LEVEL
        elif kind == "code":
            yield r"[^\s\[\](){}|<>]*:\d+"
        elif kind == "space":
            yield " +"  # numbers are often padded
        else:
            yield r"\d+"
    yield re.escape(prefix[position:])
