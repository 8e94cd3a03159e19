"""Tracebacks whose last line, which names the exception, is missing: who pasted them left it out. Pure.

Debuggers print the message first and the frames below it, innermost first: there it is not missing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from allaboard.facts import Frame
from allaboard.formats.dumps.python_tracebacks import TRACEBACK_HEAD

MAX_LINES = 200
"""Lines at the end of a log among which such a traceback is looked for."""
MAX_LOOSE_LINES = 3
"""Lines after the last frame: its source line, and what is left of the next one."""
_FRAME = re.compile(
    r'[>\s]*File "(?P<file>[^"\n]{1,1000})", line (?P<line>\d{1,9}), in (?P<function>\S.{0,199})'
)
_BROKEN_FRAME = re.compile(
    r'[>\s]*File "[^"\n]{1,1000}(?:$|",? ?(?:l(?:i(?:n(?:e(?: \d{0,9},?)?)?)?)?)?$)'
)
"""A frame whose line ends too early."""
_SPAWNED = re.compile(
    r"-- Process (?P<number>\d{1,7}) terminated with the following (?:error|exception):"
)
_EXCEPTION = re.compile(
    r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit|Warning)\b|[A-Za-z_][\w.]*: "
)
"""Begins the line that names an exception."""
_RELAYED = re.compile(r"\S*RayTaskError\(")
"""Begins what Ray's driver raises of a task; the frames of that task stand below it."""
_CHAIN = re.compile(
    r"The above exception was the direct cause|During handling of the above exception, another"
)
_BOX_END = re.compile(r"[^│]{0,80}[╰└]─")
_BOX_ROW = re.compile(r"│.*(?:│|\.\.\.|\w)\s*$")
_BOX_PLACE = re.compile(
    r"│ (?P<file>/[^\s:]{1,1000}):(?P<line>\d{1,9})(?: in (?P<function>\S{1,200}))?\s"
)
_BOX_LINE = re.compile(r"│ ❱ +(?P<line>\d{1,9}) │")
_ERROR_WORDS = re.compile(
    r"\b\w*(?:Error|Exception)\b|\berror\b|\bfailed\b|mismatch", re.IGNORECASE
)


BREAKS_OFF = "its traceback breaks off at "
"""In the sentence about a traceback without its end: what its process raised is not known."""


_HEAD = re.compile(r"(?:^|[\s>\]:|])Traceback(?: \(most recent call last\):)?\s*$")
_BROKEN_HEAD = re.compile(r"(?:^|[>\]:|] ?)Traceb(?:a(?:c(?:k(?: \([\w ]*\)?)?)?)?)?$")
"""A head whose line ends too early, at the end of a log."""
MAX_BEGUN_LINES = 3
"""Lines below such a head: a frame, its source line, and what is left of the next one."""


class BegunTraceback(NamedTuple):
    """A traceback of which hardly more than its head is there."""

    line: int
    """Index of the head."""
    spawned: int
    """Number of the process that torch.multiprocessing started, of which it is; -1 if it is of none."""


def begun_traceback(lines: Sequence[str]) -> BegunTraceback | None:
    """Return the traceback that begins just before these lines end; None if none does."""
    numbers = [
        n for n in range(max(0, len(lines) - MAX_LINES), len(lines)) if lines[n].strip("` \t>")
    ]
    final = numbers[-MAX_BEGUN_LINES - 1 :]
    heads = [n for n in final if _HEAD.search(lines[n])]
    if not heads and final and _BROKEN_HEAD.search(lines[final[-1]]):
        heads = final[-1:]
    following = [lines[n] for n in final if heads and n > heads[-1]]
    if heads and heads[-1] == numbers[0]:
        return None  # a piece of a file, which tells nothing of a run
    if not heads or any(map(_ends_traceback, (line.strip() for line in following))):
        return None
    if following and 'File "' not in following[0]:
        return None
    above = [
        m
        for n in numbers
        if n < heads[-1] and (m := _SPAWNED.match(lines[n])) and n >= heads[-1] - 2
    ]
    return BegunTraceback(heads[-1], int(above[-1]["number"]) if above else -1)


class CutTraceback(NamedTuple):
    """A traceback that breaks off."""

    line: int
    """Index of its first line."""
    frame: Frame
    """The innermost frame that is left, of the user's own code if there is one."""
    innermost: Frame
    """The innermost frame that is left, whosoever code it is."""
    spawned: int
    """Number of the process that torch.multiprocessing started, of which it is; -1 if it is of none."""
    cause: str
    """The exception above it of which this one came, as its last line; "" if there is none."""
    message: str
    """The message above it, if the frames stand below theirs; else ""."""


def cut_traceback(lines: Sequence[str]) -> CutTraceback | None:
    """Return the traceback with which these lines break off; None if they end otherwise."""
    first_number = max(0, len(lines) - MAX_LINES)
    numbers = [
        n
        for n in range(first_number, len(lines))
        if lines[n].strip() and lines[n].strip("`> ") != ""
    ]
    frames = [n for n in numbers if _FRAME.match(lines[n])]
    if len(frames) < 2:
        return _cut_box(lines, numbers)
    following = [lines[n] for n in numbers if n > frames[-1]]
    if len(following) > MAX_LOOSE_LINES or any(map(_ends_traceback, following)):
        return None
    begin = _begin_of_block(lines, frames[-1], first_number)
    is_python = TRACEBACK_HEAD in lines[begin]
    message = "" if is_python else _message_above(lines, begin)
    if not is_python and not message:
        return None
    if message and not _is_innermost_first(lines, begin):
        message = ""  # of a traceback whose head is missing, too
    matches = [m for n in frames if n > begin and (m := _FRAME.match(lines[n])) is not None]
    read = [Frame(m["file"], int(m["line"]), m["function"]) for m in matches]
    inner_first = read if message else read[::-1]
    if not inner_first:
        return None
    frame = next((f for f in inner_first if f.is_user), inner_first[0])
    above = [m for line in lines[max(0, begin - 2) : begin] if (m := _SPAWNED.match(line))]
    spawned = int(above[-1]["number"]) if above else -1
    cause = _cause_above(lines, begin)
    if not cause and _RELAYED.match(lines[begin]):
        cause = lines[begin].strip()[:300]
    return CutTraceback(begin, frame, inner_first[0], spawned, cause, message)


def _cause_above(lines: Sequence[str], begin: int) -> str:
    """Return the exception that stands above a traceback which says that it came of that one."""
    above = [line.strip() for line in lines[max(0, begin - 5) : begin] if line.strip()]
    if len(above) < 2 or not _CHAIN.match(above[-1]) or not _EXCEPTION.match(above[-2]):
        return ""
    return above[-2][:300]


def _cut_box(lines: Sequence[str], numbers: Sequence[int]) -> CutTraceback | None:
    """Return the place that a box of Python's rich shows, of which the beginning and the end are missing."""
    final = [lines[n] for n in numbers[-MAX_LOOSE_LINES:]]
    if not final or not all(map(_BOX_ROW.search, final)):
        return None
    box_place: re.Match[str] | None = None
    cut_traceback: CutTraceback | None = None
    for number in numbers:
        if _BOX_END.match(lines[number]):
            box_place = cut_traceback = None
        box_place = _BOX_PLACE.search(lines[number]) or box_place
        shown = _BOX_LINE.search(lines[number])
        if box_place is not None and shown is not None and shown["line"] == box_place["line"]:
            frame = Frame(box_place["file"], int(box_place["line"]), box_place["function"] or "?")
            cut_traceback = CutTraceback(number, frame, frame, -1, "", "")
    if cut_traceback is None and box_place is not None:
        frame = Frame(box_place["file"], int(box_place["line"]), box_place["function"] or "?")
        return CutTraceback(numbers[-1], frame, frame, -1, "", "")
    return cut_traceback


def _ends_traceback(line: str) -> bool:
    return (
        line[:1] not in (" ", "\t")
        and not _BROKEN_FRAME.match(line)
        and bool(_EXCEPTION.match(line))
    )


def _begin_of_block(lines: Sequence[str], last_number: int, first_number: int) -> int:
    """Return the index of the head above these frames, or of the first line that is not indented."""
    number = last_number
    while number > first_number:
        number -= 1
        line = lines[number]
        if TRACEBACK_HEAD in line:
            return number
        if (
            line.strip()
            and line[:1] not in (" ", "\t", ">")
            and line.strip("^~ ")
            and not _has_head(lines, first_number, number)
        ):
            return number
    return number


def _has_head(lines: Sequence[str], first_number: int, number: int) -> bool:
    """Return True if a head stands above, with nothing in between that ends a traceback: processes that write
    at once tear each other's lines."""
    for above in range(number, first_number - 1, -1):
        if TRACEBACK_HEAD in lines[above]:
            return True
        if above < number and _ends_traceback(lines[above]) and not _FRAME.match(lines[above + 1]):
            return False
    return False


def _is_innermost_first(lines: Sequence[str], begin: int) -> bool:
    """Return True if the first frame below this line is the one that raised."""
    frame_number = next(
        (n for n in range(begin + 1, len(lines)) if _FRAME.match(lines[n])), len(lines)
    )
    return any(
        line.lstrip().startswith("raise ") for line in lines[frame_number + 1 : frame_number + 2]
    )


def _message_above(lines: Sequence[str], begin: int) -> str:
    """Return the message below which the frames stand; "" if that line is none."""
    next_lines = (line.strip() for line in lines[begin + 1 : begin + 3] if not _FRAME.match(line))
    text = " ".join([lines[begin].strip(), *next_lines])
    return text[:300] if _ERROR_WORDS.search(text) else ""
