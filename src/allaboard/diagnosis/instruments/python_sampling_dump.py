"""`python -m profiling.sampling dump PID` of Python 3.15 and later, of one or several processes in a file.

Written from CPython's source (Lib/profiling/sampling/dump.py), not recorded: it needs a worker of that
version.
"""

from __future__ import annotations

import re

from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Frame, Glimpse, Stack, Testimony
from allaboard.formats.dumps.process_roles import process_role

MAX_THREADS = 4096
"""Threads that are read of one exhibit."""
MAX_FRAMES = 200
"""Frames of one thread that are read."""
_HEAD = re.compile(
    r"^Stack dump(?: for PID (?P<pid>\d{1,9}))?(?:, thread \d+)?"
    r" \((?P<details>[^)\n]*)most recent call last\):$",
    re.M,
)
_FRAME = re.compile(
    r'^  File "(?P<file>[^"\n]{1,500})", line (?P<line>\d{1,7}), in (?P<name>[^\n]{1,300})$', re.M
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def read_log(exhibit: Exhibit) -> Testimony | None:
    if b"Stack dump" not in exhibit.data:
        return None
    text = _COLOUR.sub("", exhibit.text)
    heads = list(_HEAD.finditer(text))[:MAX_THREADS]
    ends = [*(h.start() for h in heads[1:]), len(text)][: len(heads)]
    main_threads: dict[int, tuple[int, tuple[Frame, ...]]] = {}
    pid = 0
    for head, end in zip(heads, ends, strict=True):
        pid = int(head["pid"] or pid)
        frames = _frames(text[head.end() : end])
        # Without --all-threads only the main thread is there.
        if frames and ("main thread" in head["details"] or pid not in main_threads):
            main_threads[pid] = head.start(), frames
    glimpses = tuple(
        Glimpse(
            origin=exhibit.place_of_line(text.count("\n", 0, begin)),
            rank=exhibit.rank if len(main_threads) == 1 else -1,
            pid=pid,
            host=exhibit.host,
            stack=Stack(frames=frames, taken_at=0.0, by="profiling.sampling"),
            role=process_role("", frames),
        )
        for pid, (begin, frames) in main_threads.items()
    )
    return Testimony(glimpses=glimpses) if glimpses else None


def _frames(part: str) -> tuple[Frame, ...]:
    """Return the frames, innermost first; a task of asyncio names its opcode behind two blanks."""
    frames = [
        Frame(m["file"], int(m["line"]), m["name"].partition("  opcode=")[0])
        for m in _FRAME.finditer(part)
    ]
    return tuple(reversed(frames[-MAX_FRAMES:]))


READER = LogReader(read=read_log)
