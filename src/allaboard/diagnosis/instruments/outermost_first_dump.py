"""Dumps of all threads by pystack, or by a program's own watchdog from `sys._current_frames()`.

The form of pystack is that of its source (1.0 to 1.5); the others are as users have published them.
"""

from __future__ import annotations

from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Glimpse, Stack, Testimony
from allaboard.formats.dumps.log_prefixes import without_torch_labels
from allaboard.formats.dumps.process_roles import process_role
from allaboard.formats.dumps.thread_dumps.outermost_first import parse_threads_dump


def read_log(exhibit: Exhibit) -> Testimony | None:
    if b'", line ' not in exhibit.data or b"hread" not in exhibit.data:
        return None
    dump = parse_threads_dump(without_torch_labels(exhibit.text))
    if dump is None:
        return None
    glimpse = Glimpse(
        origin=exhibit.place_of_line(dump.line),
        rank=exhibit.rank,
        pid=dump.pid or exhibit.pid,
        host=exhibit.host,
        guess=exhibit.local,
        stack=Stack(frames=dump.frames, taken_at=0.0, by="threads of Python"),
        role=process_role("", dump.frames),
    )
    return Testimony(glimpses=(glimpse,))


READER = LogReader(read=read_log)
