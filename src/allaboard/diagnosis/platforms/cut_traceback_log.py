"""A log that breaks off within a traceback: the exception itself is missing, but not where it was raised."""

from __future__ import annotations

import re

from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Frame, Heard, Speaker, Testimony
from allaboard.formats.dumps.python_tracebacks import TRACEBACK_HEAD

_FRAME = re.compile(r'\s{1,12}File "([^"\n]{1,1000})", line (\d+), in (\S.{0,200})')
MAX_CUT_LINES = 3
"""Lines after the last whole frame that may belong to it, or to the next, which is cut."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    """Return the place where the traceback was cut, if it is the end of this log."""
    text = exhibit.text.rstrip()
    begin = text.rfind(TRACEBACK_HEAD)
    if begin < 0:
        return None
    lines = text[begin:].split("\n")[1:]
    frames = [(number, match) for number, line in enumerate(lines) if (match := _FRAME.match(line))]
    if not frames or any(line[:1] not in ("", " ", "\t") for line in lines):
        return None
    last_number, _ = frames[-1]
    if len(lines) - last_number - 1 > MAX_CUT_LINES:
        return None
    innermost = Frame(frames[-1][1][1], int(frames[-1][1][2]), frames[-1][1][3].strip())
    users = [
        frame
        for _, match in reversed(frames)
        if (frame := Frame(match[1], int(match[2]), match[3].strip())).is_user
    ]
    called = f", called at {users[0]}" if users and users[0] != innermost else ""
    number = text.count("\n", 0, begin) + 1 + last_number
    heard = Heard(
        rule="LOG012",
        says=f"the log breaks off within a traceback, before its exception: in {innermost}{called}",
        speakers=(
            Speaker(exhibit.rank, lines[last_number].strip()[:300], exhibit.place_of_line(number)),
        ),
        fix="take the rest of it: the line under the frames names the exception and its reason "
        "(python -u SCRIPT 2>&1 | tee LOG); then allaboard diagnose LOG",
        proves_not="what was raised, nor that it ended the process",
    )
    return Testimony(heard=(heard,))


READER = LogReader(read=read_log)
