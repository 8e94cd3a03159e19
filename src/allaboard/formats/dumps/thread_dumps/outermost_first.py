"""Stacks of all threads that list the outermost call first, as Python's `traceback` module prints them. Pure.

So a program's own watchdog writes them, from `sys._current_frames()`, and so does pystack (1.0 to 1.5), which
adds the frames of native code. Each has a head of its own; what all heads have is the word "thread", with the
thread's number or name.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from allaboard.facts import Frame
from allaboard.formats.dumps.thread_dumps.program_thread import program_frames

MAX_THREADS = 4096
"""Threads that are read of one text."""
MAX_FRAMES = 400
"""Frames of one thread that are read."""
_HEAD = re.compile(
    r"(?!.*most recent call first)\W{0,20}(?:\w[\w ]{0,30} )?thread(?:[ _-]?(?:id|name))?\b[^\n]{0,160}$",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"0x[0-9a-f]+|\b\d{2,}\b", re.IGNORECASE)
_FRAME = re.compile(
    r'\s{0,8}(?:\((?P<kind>Python|C)\) )?File:? "(?P<file>[^"\n]{1,500})", line (?P<line>\d{1,7}), in '
    r"(?P<name>[^\n]{1,300})$"
)
_MAIN_NAME = "MainThread"
_PROCESS = re.compile(r"^Dumping threads for process (?P<pid>\d{1,9})$", re.MULTILINE)


class ThreadsDump(NamedTuple):
    """The stacks of the threads of one process."""

    line: int
    """Lines before its first thread."""
    pid: int
    """Its process id; 0 if the dump does not say it."""
    frames: tuple[Frame, ...]
    """Frames of the thread that runs the program, innermost first."""


class _Thread(NamedTuple):
    line: int
    head: str
    frames: tuple[Frame, ...]


def parse_threads_dump(text: str) -> ThreadsDump | None:
    """Return the dump of one process in this text; None if there is none, or no thread runs a program."""
    threads = _read_threads(text.split("\n"))
    if not threads:
        return None
    main = _main_thread(threads)
    if main is None:
        return None
    process = _PROCESS.search(text)
    number = _NUMBER.search(main.head)
    # pystack numbers threads as the kernel does, and the main one has the process's number.
    is_pystack = main.head.startswith("Traceback for thread ")
    pid = int(process["pid"]) if process is not None else 0
    if not pid and is_pystack and number is not None:
        pid = int(number[0], 0)
    other_threads = (t.frames for t in threads if t is not main)
    return ThreadsDump(threads[0].line, pid, program_frames(main.frames, other_threads))


def _read_threads(lines: list[str]) -> list[_Thread]:
    threads: list[_Thread] = []
    number = 0
    while number + 1 < len(lines) and len(threads) < MAX_THREADS:
        if _HEAD.match(lines[number]) is None or _FRAME.match(lines[number + 1]) is None:
            number += 1
            continue
        begin, number = number, number + 1
        frames: list[Frame] = []
        while number < len(lines) and lines[number].strip():
            match = _FRAME.match(lines[number])
            if match is not None and match["kind"] != "C":
                frames.append(Frame(match["file"], int(match["line"]), match["name"].strip()))
            elif match is None and frames and lines[number].startswith((" ", "\t")):
                frames[-1] = Frame(
                    frames[-1].file, frames[-1].line, frames[-1].function, lines[number].strip()
                )
            elif match is None:
                break
            number += 1
        threads.append(_Thread(begin, lines[begin], tuple(reversed(frames[:MAX_FRAMES]))))
    return threads


def _main_thread(threads: list[_Thread]) -> _Thread | None:
    """Return the main thread: by its name, else the one that begins at a module, and not in `threading`."""
    named = [t for t in threads if _MAIN_NAME in t.head and t.frames]
    candidates = named or [t for t in threads if t.frames and t.frames[-1].function == "<module>"]
    if candidates:
        return candidates[0]
    started = [t for t in threads if t.frames and t.frames[-1].function != "_bootstrap"]
    return started[0] if len(started) == 1 else None
