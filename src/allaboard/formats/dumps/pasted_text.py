"""Logs as people paste them: quoted like a mail, exported in double quotes, or cut within a traceback.

Pure. No line is taken away, so that the numbers of lines stay those of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from allaboard.formats.dumps.python_tracebacks import TRACEBACK_HEAD

MAX_FRAME_LINES = 400
"""Lines after the first frame of a traceback without a head within which its exception must stand."""
_QUOTE = re.compile(r"^>{1,3} ?", re.MULTILINE)
_UNQUOTED = re.compile(r"^(?!>)[^\n]*\S", re.MULTILINE)
_EXPORTED = re.compile(r"^\"(?P<line>[^\n]*)\"[ \t\r]*$", re.MULTILINE)
"""A line that an export to CSV put into double quotes."""
_POOL_MEMBER = re.compile(r"^workerpool\d-\d{1,4}[ \t\r]*$", re.MULTILINE)
"""A line in which an export of Vertex AI names who wrote the next one."""
MIN_EXPORTED_LINES = 3
"""Lines in double quotes that make an export."""
_STREAM = re.compile(
    r"^(?P<stream>[A-Za-z]{2,12}[:|>] ?|(?! {2}\| Exception Group) {1,4}\| )(?: {0,4}File \"|Traceback "
    r"\(most)",
    re.MULTILINE,
)
"""Name of a stream, or a bar, as some runners put it before each line; one with a number may name a
process."""
_OTHER_TRACEBACK = "C++ Traceback (most recent call last):"
"""Head of a native stack, as Paddle writes it; it is no exception of Python's."""
_GROUP_HEAD = "Exception Group Traceback"
_PYTEST_ERROR = re.compile(r"^E(?: {19}| {3}(?! {16}))", re.MULTILINE)
"""What pytest puts before each line of an error; as wide again for an exception of another process."""
_NUMBERED = re.compile(r"[ \t]{0,6}(?P<number>\d{1,7})(?:[:|)]? ?\t|[:|)]? |[:|)]?$)")
"""The number of a line before it."""
MIN_NUMBERED_LINES = 6
"""Lines with a number that make a numbered text: the ranks of a small job may write one line each."""
NUMBERED_SHARE = 0.9
"""Share of the lines that must have a number, and of these that must be one more than the one before."""
STREAM_SHARE = 0.8
"""Share of the lines that must begin with it."""
_MARGIN_FRAME = re.compile(r'File "[^"\n]{1,1000}", line \d+, in \S')
"""A frame that lost its indentation, as on the way through a chat or a web page."""
_TORCH_LABEL = re.compile(r"\[rank\d{1,7}\]: ?")
_FRAME = re.compile(r'(?:> |\s{0,8})File "[^"\n]{1,1000}", line \d+, in \S')
_EXCEPTION = re.compile(
    r"(?:(?:[A-Za-z_]\w{0,80}\.){0,12}[A-Za-z_]\w{0,80}(?:Error|Exception|Interrupt|Exit|Abort|Timeout|Failure)"
    r"|Exception(?=: \S)"
    r"|(?:[a-z_]\w{0,80}\.){1,12}_?[A-Z]\w{2,80}(?=: ))"
    r"(?: \(see above for traceback\))?(?::|$)"
)
"""Begins the last line of a traceback."""
_OTHER_STACK = re.compile(r":\s*$|\bStack \(most recent call last\)|\bdefined at\b|RayTaskError\(")
"""Ends the line above a stack that is no traceback, or that has a head of its own."""


def unquote(text: str) -> str:
    """Return the text without the ``>`` or the double quotes around each of its lines, if they have them."""
    if text.startswith(">") and not text.startswith(">>>") and not _UNQUOTED.search(text):
        text = _QUOTE.sub("", text)
    if _OTHER_TRACEBACK in text:
        text = text.replace(_OTHER_TRACEBACK, "C++ stack (most recent call last):")
    if text.count('"\n') >= MIN_EXPORTED_LINES:
        exported = _EXPORTED.findall(text)
        if len(exported) >= MIN_EXPORTED_LINES and any('File "' in line for line in exported):
            text = _EXPORTED.sub(lambda match: _indented(match["line"]), text)
            text = _POOL_MEMBER.sub("", text)
    text = _without_numbers(text) if 'File "' in text else text
    return _without_stream(_PYTEST_ERROR.sub("", text) if text.startswith("E   ") else text)


def _without_numbers(text: str) -> str:
    """Return the text without the numbers of its lines, as pages and `cat -n` show them before each."""
    lines = text.split("\n")
    matches = [m for line in lines if line.strip() and (m := _NUMBERED.match(line)) is not None]
    written = sum(bool(line.strip()) for line in lines)
    if len(matches) < max(MIN_NUMBERED_LINES, NUMBERED_SHARE * written):
        return text
    numbers = [int(m["number"]) for m in matches]
    in_order = sum(b == a + 1 for a, b in pairwise(numbers))
    if numbers[0] == 0 or in_order < NUMBERED_SHARE * (len(numbers) - 1):
        return text  # the ranks of a launcher
    return "\n".join(_NUMBERED.sub("", line) for line in lines)


def _without_stream(text: str) -> str:
    """Return the text without the name of a stream before nearly each of its lines."""
    is_stream = 'File "' in text and _GROUP_HEAD not in text
    match = _STREAM.search(text) if is_stream else None
    if match is None:
        return text
    stream = match["stream"]
    lines = text.split("\n")
    of_stream = sum(line.startswith(stream) for line in lines)
    if of_stream < STREAM_SHARE * sum(bool(line.strip()) for line in lines):
        return text
    return "\n".join(line.removeprefix(stream) for line in lines)


def indent_frames(lines: Sequence[str]) -> list[str]:
    """Return the lines with those of frames that begin at the margin indented as Python writes them."""
    indented: list[str] = []
    is_source = False
    for written in lines:
        label = match[0] if (match := _TORCH_LABEL.match(written)) is not None else ""
        line = written[len(label) :]
        is_frame = line.startswith("File ") and _MARGIN_FRAME.match(line) is not None
        if is_frame:
            indented.append(f"{label}  {line}")
        elif is_source and line[:1] not in ("", " ", "\t") and not _EXCEPTION.match(line.rstrip()):
            indented.append(f"{label}    {line}")
        else:
            indented.append(written)
        is_source = is_frame or (is_source and not line.strip())
    return indented


def _indented(line: str) -> str:
    return f" {line}" if line.startswith(" File ") else line


def missing_heads(lines: Sequence[str]) -> Iterator[int]:
    """Yield the indices of the first frames of tracebacks whose head is missing.

    Who copies from a terminal often begins below it. The exception must stand under the frames, since other
    stacks (of graphs, of loggers) have the same frames.
    """
    number = 0
    above = ""
    while number < len(lines):
        line = lines[number]
        if TRACEBACK_HEAD in line:
            number = _end_of_frames(lines, number + 1)
            continue
        if '", line ' in line and _FRAME.match(line):
            end = _end_of_frames(lines, number)
            is_whole = end < len(lines) and _EXCEPTION.match(lines[end].rstrip()) is not None
            if is_whole and not _OTHER_STACK.search(above):
                yield number
            number = max(end, number + 1)
            above = ""
            continue
        above = line if line.strip() else above
        number += 1


def _end_of_frames(lines: Sequence[str], begin: int) -> int:
    """Return the index of the first line from there that belongs to no frame."""
    for number in range(begin, min(len(lines), begin + MAX_FRAME_LINES)):
        line = lines[number]
        if line[:1] not in ("", " ", "\t", "\r") and not _FRAME.match(line):
            return number
    return min(len(lines), begin + MAX_FRAME_LINES)


_FLAT_FRAME = re.compile(r' (?=File "[^"\n]{1,1000}", line \d{1,9}, in )')
_FLAT_CODE = re.compile(
    r'(?P<frame>File "[^"\n]{1,1000}", line \d{1,9}, in \S{1,200})(?: (?P<code>.*))?'
)
_FLAT_ERROR = re.compile(
    r" (?P<error>(?:[A-Za-z_]\w{0,80}\.){0,12}[A-Z]\w{0,80}(?:Error|Exception|Interrupt|Exit)(?:: .*)?)$"
)
MAX_FLAT_CHARS = 20_000
"""Characters of a line that may hold a whole traceback."""


def unfold_traceback(line: str) -> list[str]:
    """Return the lines of a traceback that was written into one line, as failure reasons of services are; the
    line itself if it holds none."""
    head = line.find(TRACEBACK_HEAD)
    if head < 0 or len(line) > MAX_FLAT_CHARS or 'File "' not in line[head:]:
        return [line]
    before, *frames = _FLAT_FRAME.split(line[head:])
    lines = [line[:head].rstrip(), before] if line[:head].strip() else [before]
    for frame in frames:
        match = _FLAT_CODE.match(frame)
        if match is None:
            return [line]
        code = match["code"] or ""
        error = _FLAT_ERROR.search(f" {code}")
        shown = code[: max(0, error.start() - 1)] if error is not None else code
        lines += [f"  {match['frame']}", f"    {shown}"]
        lines += [error["error"]] if error is not None else []
    return lines
