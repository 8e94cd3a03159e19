"""Tracebacks as IPython shows them in notebooks (Jupyter, Colab, Kaggle), of IPython 5 to 9. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

HEAD = "Traceback (most recent call last)"
_HEAD_LINE = re.compile(r"(?P<type>[A-Za-z_]\w{0,80}) {2,}Traceback \(most recent call last\)\s*$")
_FRAME = re.compile(
    # IPython 8: its cells, and files with their line.
    r"Cell In ?\[(?P<cell>\d+)\], line (?P<line>\d+)(?:, in (?P<in>[\w.<>]+))?"
    r"|File (?P<file>\S{1,500}?):(?P<file_line>\d+), in (?P<file_in>[\w.<>]+)"
    # Before: the line is only beside the source.
    r"|(?:Input In|In) ?\[(?P<old_cell>\d+)\], in "
    r"|(?P<old_file><ipython-input-\d+-\w+>|(?:/|~|[A-Z]:\\)\S{1,500}) in (?P<old_in>[\w.<>]+)"
)
_ARROW = re.compile(r"-+> *(?P<line>\d+) ?(?P<source>.*)$")
_ERROR = re.compile(
    r"(?:[A-Za-z_]\w{0,80}\.){0,12}[A-Z]\w{0,80}(?:Error|Exception|Interrupt|Exit)(?:: |$)"
)
"""Begins the last line of a traceback."""
MAX_SOURCE_LINES = 14
"""Lines of source below the head of a frame."""


def has_notebook_traceback(text: str) -> bool:
    """Return True if the text has the head of a traceback as IPython writes it."""
    return f"  {HEAD}\n" in text or f"  {HEAD}\r" in text


def convert_headless(lines: Sequence[str]) -> list[str]:
    """Return the same lines, one for one, with the frames of a notebook's traceback in the form of Python's
    own, if it was copied without its first lines."""
    begin = next(
        (
            n
            for n, line in enumerate(lines)
            if _FRAME.match(line)
            and any(map(_ARROW.match, lines[n + 1 : n + 1 + MAX_SOURCE_LINES]))
        ),
        None,
    )
    if begin is None or any(HEAD in line for line in lines):
        return list(lines)
    end = next((n for n in range(begin + 1, len(lines)) if _ERROR.match(lines[n])), None)
    if end is None:
        return list(lines)
    converted = list(lines)
    for number in range(begin, end):
        frame, source = _FRAME.match(lines[number]), _ARROW.match(lines[number])
        if frame is not None:
            following = lines[number + 1 : number + 1 + MAX_SOURCE_LINES]
            converted[number] = _frame_line(frame, following)
        else:
            converted[number] = f"    {source['source'].strip()}" if source is not None else "    "
    return converted


def to_python_tracebacks(lines: Sequence[str]) -> list[str]:
    """Return the same lines, one for one, with IPython's tracebacks in the form of Python's own."""
    lines_out: list[str] = []
    error_type = ""
    for number, line in enumerate(lines):
        if head := _HEAD_LINE.match(line):
            error_type = head["type"]
            lines_out.append(f"{HEAD}:")
        elif not error_type or re.match(rf"{error_type}(?:: |$)", line):
            error_type = ""
            lines_out.append(line)
        elif frame := _FRAME.match(line):
            lines_out.append(_frame_line(frame, lines[number + 1 : number + 1 + MAX_SOURCE_LINES]))
        else:
            source = _ARROW.match(line)
            lines_out.append(f"    {source['source'].strip()}" if source is not None else "    ")
    return lines_out


def _frame_line(frame: re.Match[str], following: Sequence[str]) -> str:
    cell = frame["cell"] or frame["old_cell"]
    file = f"In[{cell}]" if cell else frame["file"] or frame["old_file"]
    arrows = (m for line in following if (m := _ARROW.match(line)) is not None)
    arrow = next(arrows, None)
    line = frame["line"] or frame["file_line"] or (arrow["line"] if arrow is not None else "0")
    function = frame["in"] or frame["file_in"] or frame["old_in"] or "<module>"
    return f'  File "{file}", line {line}, in {function}'
