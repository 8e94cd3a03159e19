"""Text of faulthandler and JSON of py-spy read into frames. Pure; source lines are added elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from allaboard.facts import Frame
from allaboard.formats.dumps.thread_dumps.program_thread import program_frames
from allaboard.late_pattern import compile_late

_THREAD = compile_late(r"^(?:Current thread|Thread) 0x([0-9a-f]+)")
_FRAME = compile_late(r'^\s+File "(.*)", line (\d+|\?\?\?) in (.*)$')

_LISTED_FRAME = compile_late(r'\s{0,8}(?:\(Python\) )?File:? "[^"\n]{1,500}", line \d+, in ')
"""Begins a frame with whose source line a stack goes on."""


def without_source_lines(lines: Sequence[str]) -> list[str]:
    """Return the lines, those of source code below the frames of a stack emptied: they are no words of a
    program."""
    return [
        "" if number and line.startswith(" ") and _LISTED_FRAME.match(lines[number - 1]) else line
        for number, line in enumerate(lines)
    ]


def parse_faulthandler(text: str, main_thread: int) -> tuple[Frame, ...]:
    """Return the frames of the thread ``main_thread`` (its pthread id), innermost first.

    If ``main_thread`` is 0, unknown, it is the last thread of the dump: CPython lists threads newest first.
    In a backward, the frames of autograd's own thread come first (`program_frames`). The result is
    empty if that thread is not in the text, which ends after a hundred threads. The format is that of
    CPython's ``_Py_DumpTracebackThreads``.
    """
    threads = parse_threads(text)
    if main_thread == 0 and threads:
        main_thread = list(threads)[-1]
    other_threads = (frames for thread, frames in threads.items() if thread != main_thread)
    return program_frames(threads.get(main_thread, ()), other_threads)


def parse_threads(text: str) -> dict[int, tuple[Frame, ...]]:
    """Return the frames of every thread in the text, by its pthread id."""
    threads: dict[int, list[Frame]] = {}
    current: list[Frame] | None = None
    for line in text.splitlines():
        if head := _THREAD.match(line):
            current = threads.setdefault(int(head[1], 16), [])
        elif current is not None and (match := _FRAME.match(line)):
            number = int(match[2]) if match[2].isdecimal() else 0
            current.append(Frame(match[1], number, match[3]))
    return {thread: tuple(frames) for thread, frames in threads.items()}


class _SpyFrame(msgspec.Struct):
    name: str
    filename: str
    line: int = 0


class _SpyThread(msgspec.Struct):
    frames: list[_SpyFrame]
    thread_name: str | None = None
    thread_id: int = 0
    os_thread_id: int | None = None
    pid: int = 0
    owns_gil: bool = False


class SpiedThread(msgspec.Struct, frozen=True):
    """One Python thread as py-spy sees it."""

    thread_id: int
    """Its kernel thread id, 0 if not known."""
    name: str
    """Its name."""
    frames: tuple[Frame, ...]
    """Its frames, innermost first."""
    owns_gil: bool
    """True if it had the GIL."""


def parse_spied_threads(text: bytes) -> tuple[SpiedThread, ...]:
    """Return all threads in the output of ``py-spy dump --json``; () if py-spy 0.4 does not print such
    output."""
    return tuple(
        SpiedThread(t.os_thread_id or 0, t.thread_name or "", _thread_frames(t), t.owns_gil)
        for t in _decode_threads(text)
    )


def parse_pyspy(text: bytes, pid: int) -> tuple[Frame, ...]:
    """Return the main thread's frames in the output of ``py-spy dump --json``, innermost first.

    The main thread is the one whose kernel thread id is the process id; else the last one. In a backward,
    the frames of autograd's own thread come first (`program_frames`). The result is empty if py-spy 0.4
    does not print such output.
    """
    threads = _decode_threads(text)
    main = [t for t in threads if t.os_thread_id == pid or t.thread_name == "MainThread"]
    main_thread = (main or threads[-1:])[:1]
    if not main_thread:
        return ()
    other_threads = (_thread_frames(t) for t in threads if t is not main_thread[0])
    return program_frames(_thread_frames(main_thread[0]), other_threads)


def _decode_threads(text: bytes) -> list[_SpyThread]:
    try:
        return msgspec.json.decode(text, type=list[_SpyThread])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []


def _thread_frames(thread: _SpyThread) -> tuple[Frame, ...]:
    # py-spy gives qualified names from Python 3.11 on, faulthandler never does.
    return tuple(Frame(f.filename, f.line, f.name.rpartition(".")[2]) for f in thread.frames)
