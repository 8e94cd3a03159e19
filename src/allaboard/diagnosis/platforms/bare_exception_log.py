"""The end of a traceback that torch's own hook wrote for a rank, without its beginning.

Whoever pastes the last lines of a log leaves the head of the traceback out; torch marks each line with its
rank.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from allaboard.analysis.failures.launcher_errors import LAUNCHER_ERRORS
from allaboard.analysis.log_ends.post_traceback_output import progress_lines
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Exit, Frame, Glimpse, Raised, Testimony
from allaboard.formats.dumps.python_tracebacks import TRACEBACK_HEAD

_LABEL = re.compile(r"\[rank(?P<rank>\d{1,7})\]: ?")
_EXCEPTION = re.compile(
    r"(?:[A-Za-z_]\w{0,60}\.){0,8}"
    r"(?P<type>[A-Z]\w{0,80}(?:Error|Exception|Interrupt|Exit)|Exception): (?P<message>\S.*)"
)
_FRAME = re.compile(r'\s+File "([^"]{1,1000})", line (\d{1,9}), in (.{1,200})$')
_RECORD = "multiprocessing.errors.error_handler:{"
_RECORDED = re.compile(
    re.escape(_RECORD)
    + r'\s{0,20}"message": \{\s{0,20}"message": "(?P<type>[A-Z]\w{0,80}): (?P<message>[^"\n]{1,1000})"'
)
"""Begins what the wrapper of a worker's main function logs (PyTorch 1.9 to 1.13, elastic's error_handler)."""
MAX_RECORDS = 1000
"""Exceptions that are read of one log."""
MAX_FRAME_LINES = 400
"""Lines above the exception among which its frames are looked for."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    if recorded := tuple(_recorded_errors(exhibit)):
        return Testimony(glimpses=recorded)
    if "[rank" not in text or TRACEBACK_HEAD in text:
        return None
    lines = text.split("\n")
    glimpses: dict[int, Glimpse] = {}
    for number, line in enumerate(lines):
        label = _LABEL.match(line)
        error = _EXCEPTION.match(line, label.end()) if label is not None else None
        if label is None or error is None or error["type"] in LAUNCHER_ERRORS:
            continue
        if not _is_end_of_traceback(lines, number, label[0].rstrip()):
            continue
        frames = _frames_above(lines[max(0, number - MAX_FRAME_LINES) : number], label[0])
        raised = Raised(
            type=error["type"],
            message=error["message"].rstrip()[:1000],
            raised_at=0.0,
            where=next((f for f in frames if f.is_user), None),
            frames=frames,
        )
        rank = int(label["rank"])
        # Of several of one rank, the last is what ended it.
        glimpses[rank] = Glimpse(
            origin=exhibit.place_of_line(number),
            rank=rank,
            pid=exhibit.pid,
            host=exhibit.host,
            raised=raised,
            exit=Exit(ended_at=0.0, code=1),
        )
    return Testimony(glimpses=tuple(glimpses.values())) if glimpses else None


def _recorded_errors(exhibit: Exhibit) -> Iterator[Glimpse]:
    """Yield what torch's @record wrote of the exception of a worker, as JSON."""
    text = exhibit.text
    if _RECORD not in text:
        return
    for match, _ in zip(_RECORDED.finditer(text), range(MAX_RECORDS), strict=False):
        raised = Raised(type=match["type"], message=match["message"][:1000], raised_at=0.0)
        yield Glimpse(
            origin=exhibit.place_of_line(text.count("\n", 0, match.start())),
            rank=exhibit.rank,
            pid=exhibit.pid,
            host=exhibit.host,
            raised=raised,
            exit=Exit(ended_at=0.0, code=1),
        )


def _is_end_of_traceback(lines: list[str], number: int, label: str) -> bool:
    """Return True if a traceback ends in this line, and the rank wrote nothing more that shows it at work.

    A launcher may put the same label before all that a rank writes, warnings too.
    """
    above = lines[number - 1].removeprefix(label).removeprefix(" ") if number else ""
    if above.strip() and not above.startswith("  "):
        return False
    following = (line.removeprefix(label).removeprefix(" ") for line in lines[number + 1 :])
    return not any(line.strip() for line in progress_lines(following))


def _frames_above(lines: list[str], label: str) -> tuple[Frame, ...]:
    """Return the frames of a rank, innermost first."""
    own_lines = [
        line.removeprefix(label.rstrip()) for line in lines if line.startswith(label.rstrip())
    ]
    frames = [
        Frame(m[1], int(m[2]), m[3], "" if _FRAME.match(below) else below.strip())
        for line, below in pairwise([*own_lines, ""])
        if (m := _FRAME.match(line)) is not None
    ]
    return tuple(reversed(frames))


READER = LogReader(read=read_log)
