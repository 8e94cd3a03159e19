"""Dumps of all threads by Python's faulthandler, also where several processes write into one file. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from allaboard.facts import Frame
from allaboard.formats.dumps.thread_dumps.program_thread import program_frames
from allaboard.formats.dumps.thread_dumps.stack_frames import parse_faulthandler, parse_threads
from allaboard.late_pattern import compile_late

MAX_DUMPS = 256
"""Main threads of one file that are told apart, and dumps of one of them that are looked at."""
MAX_THREADS = 100
"""Threads after which CPython stops, so that the main one was not written."""
MAX_THREAD_LENGTH = 1 << 16
"""Characters of one thread: a hundred frames."""
MAX_OTHER_THREADS_LENGTH = 1 << 18
"""Characters of a dump's other threads that are read."""
FATAL_ERROR = "Fatal Python error: "
"""Begins what is written when native code crashes, or the interpreter gives up."""
_FATAL = compile_late(rf"^(?:\[\w+\]:? ?)?{FATAL_ERROR}([^\n]{{1,100}})", re.MULTILINE)
_CURRENT_THREAD = compile_late(r"^Current thread 0x([0-9a-f]+)", re.MULTILINE)
MAX_DUMP_LENGTH = 1 << 20
"""Characters of a crash's dump that are read: a hundred threads of a hundred frames."""
_HEAD = compile_late(
    r"^(?:Current thread|Thread) 0x([0-9a-f]+)[^\n]*\(most recent call first\):?|"
    r"^Stack \(most recent call first\):?",
    re.MULTILINE,
)
_LINE = compile_late(
    r'  File (?:"[^"\n]*"|\?\?\?), line (?:\d+|\?\?\?) in [^"\n]+|  \.\.\.|  <[^>]*>'
)


class MainThreadDump(NamedTuple):
    """The last dump of one process's main thread."""

    begin: int
    """Position of the dump in the text."""
    thread_id: int
    """Id of the main thread, 0 if the dump does not say it."""
    frames: tuple[Frame, ...]
    """Frames of that thread, innermost first."""


class Crash(NamedTuple):
    """A report of a fatal error."""

    begin: int
    """Position of its first line in the text."""
    reason: str
    """What happened, as "Segmentation fault"."""
    frames: tuple[Frame, ...]
    """Frames of the thread in which it happened, innermost first; () if none are written."""

    @property
    def line(self) -> str:
        """The report in one line, with the place in the user's own code, else the innermost one."""
        place = next((f for f in self.frames if f.is_user), self.frames[0] if self.frames else None)
        return f"{FATAL_ERROR}{self.reason}" + (f", {place}" if place else "")


def find_crash(text: str) -> Crash | None:
    """Return the first report of a fatal error in the text; None without one."""
    fatal = _FATAL.search(text)
    if fatal is None:
        return None
    part = text[fatal.end() : fatal.end() + MAX_DUMP_LENGTH]
    thread = _CURRENT_THREAD.search(part)
    frames = parse_faulthandler(part, int(thread[1], 16)) if thread is not None else ()
    return Crash(fatal.start(), fatal[1].strip(), frames)


def last_dumps(text: str) -> list[MainThreadDump]:
    """Return the last dump of each main thread, in order.

    Forked processes share the id of their parent's main thread: they are told apart by where their own code
    begins. Torn lines belong to no dump.
    """
    last_by_thread: dict[tuple[int, bool], MainThreadDump] = {}
    dump_counts: dict[int, int] = {}
    # From the end: the last dump of a thread counts, and setdefault keeps what it meets first.
    for begin, head, end, main in reversed(list(find_dumps(text))):
        dump_counts[main] = dump_counts.get(main, 0) + 1
        if dump_counts[main] > MAX_DUMPS or len(dump_counts) > MAX_DUMPS:
            continue
        frames = _thread_frames(text[head.start() : min(end, head.start() + MAX_THREAD_LENGTH)])
        earlier = text[max(begin, head.start() - MAX_OTHER_THREADS_LENGTH) : head.start()]
        frames = program_frames(frames, parse_threads(earlier).values())
        if frames:
            forked = any(f.function == "_bootstrap" and "multiprocessing" in f.file for f in frames)
            last_by_thread.setdefault((main, forked), MainThreadDump(begin, main, frames))
    return sorted(last_by_thread.values())


def find_dumps(text: str) -> Iterator[tuple[int, re.Match[str], int, int]]:
    """Yield for each dump its begin, the head of its last thread (the main one), its end, and the main
    thread's id.

    The id is 0 if it is not known. CPython writes one blank line between the threads of one dump.
    """
    begin, count = -1, 0
    previous_head: re.Match[str] | None = None
    for head in _HEAD.finditer(text):
        if previous_head is not None:
            between = text[previous_head.start() : head.start()]
            if between.endswith("\n\n") and between.count("\n\n") == 1 and count < MAX_THREADS:
                previous_head, count = head, count + 1
                continue
            yield begin, previous_head, head.start(), _main_thread_id(previous_head, count)
        begin, previous_head, count = head.start(), head, 1
    if previous_head is not None:
        yield begin, previous_head, len(text), _main_thread_id(previous_head, count)


def _main_thread_id(last_head: re.Match[str], count: int) -> int:
    return int(last_head[1] or "0", 16) if count < MAX_THREADS else 0


def _thread_frames(block: str) -> tuple[Frame, ...]:
    """Return the frames of a thread; () if another process wrote between its lines."""
    head, *lines = block.split("\n")
    frame_lines: list[str] = []
    for line in lines:
        if not line.startswith("  "):
            break
        frame_lines.append(line)
    if not all(map(_LINE.fullmatch, frame_lines)) or head.count("0x") > 1:
        return ()
    return parse_faulthandler("\n".join(["Thread 0x1", *frame_lines]), 0)
