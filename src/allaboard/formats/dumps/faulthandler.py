"""What Python's faulthandler writes of all threads each time that it is asked, also where several processes
write into one file. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from allaboard.facts import Frame
from allaboard.formats.dumps.stack_frames import parse_faulthandler

MAX_DUMPS = 256
"""Main threads of one file that are told apart, and dumps of one that are looked at."""
MAX_THREADS = 100
"""After so many CPython stops, and the main one was not written."""
MAX_THREAD_LENGTH = 1 << 16
"""Characters of one thread: a hundred frames."""
_HEAD = re.compile(
    r"^(?:Current thread|Thread) 0x([0-9a-f]+)[^\n]*\(most recent call first\):?|"
    r"^Stack \(most recent call first\):?",
    re.MULTILINE,
)
_LINE = re.compile(
    r'  File (?:"[^"\n]*"|\?\?\?), line (?:\d+|\?\?\?) in [^"\n]+|  \.\.\.|  <[^>]*>'
)


class MainThreadDump(NamedTuple):
    """One process: where its last dump begins in the text, the id of its main thread (0 where it is not
    told), and that thread's frames, innermost first."""

    begin: int
    thread_id: int
    frames: tuple[Frame, ...]


def last_dumps(text: str) -> list[MainThreadDump]:
    """The last dump of each main thread, in order. Processes that were forked from another have the id of its
    main thread: they are kept apart by where their own code begins. Torn lines are of none."""
    found: dict[tuple[int, bool], MainThreadDump] = {}
    looked: dict[int, int] = {}
    for begin, head, end, main in reversed(list(find_dumps(text))):
        looked[main] = looked.get(main, 0) + 1
        if looked[main] > MAX_DUMPS or len(looked) > MAX_DUMPS:
            continue
        frames = _frames(text[head.start() : min(end, head.start() + MAX_THREAD_LENGTH)])
        if frames:
            forked = any(f.function == "_bootstrap" and "multiprocessing" in f.file for f in frames)
            found.setdefault((main, forked), MainThreadDump(begin, main, frames))
    return sorted(found.values())


def find_dumps(text: str) -> Iterator[tuple[int, re.Match[str], int, int]]:
    """Where each dump begins, the head of its last thread, which is the main one, its end, and the main
    thread's id, 0 where it is not told. CPython writes one blank line between the threads of one dump."""
    begin, count = -1, 0
    before: re.Match[str] | None = None
    for head in _HEAD.finditer(text):
        if before is not None:
            between = text[before.start() : head.start()]
            if between.endswith("\n\n") and between.count("\n\n") == 1 and count < MAX_THREADS:
                before, count = head, count + 1
                continue
            yield begin, before, head.start(), _main(before, count)
        begin, before, count = head.start(), head, 1
    if before is not None:
        yield begin, before, len(text), _main(before, count)


def _main(last: re.Match[str], count: int) -> int:
    return int(last[1] or "0", 16) if count < MAX_THREADS else 0


def _frames(block: str) -> tuple[Frame, ...]:
    """The frames of a thread; () where another process wrote into its lines."""
    head, *lines = block.split("\n")
    own: list[str] = []
    for line in lines:
        if not line.startswith("  "):
            break
        own.append(line)
    if not all(map(_LINE.fullmatch, own)) or head.count("0x") > 1:
        return ()
    return parse_faulthandler("\n".join(["Thread 0x1", *own]), 0)
