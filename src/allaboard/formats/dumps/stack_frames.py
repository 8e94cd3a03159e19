"""Text of faulthandler and JSON of py-spy into frames. Pure; source lines are added elsewhere."""

from __future__ import annotations

import re

import msgspec

from allaboard.facts import Frame

_THREAD = re.compile(r"^(?:Current thread|Thread) 0x([0-9a-f]+)")
_FRAME = re.compile(r'^\s+File "(.*)", line (\d+|\?\?\?) in (.*)$')


def parse_faulthandler(text: str, main_thread: int) -> tuple[Frame, ...]:
    """The frames of the thread ``main_thread`` (its pthread id), innermost first.

    Where ``main_thread`` is 0, unknown, it is the last thread of the dump: CPython lists threads newest
    first. Empty when that thread is not in the text, which ends after a hundred threads. The format is
    that of CPython's ``_Py_DumpTracebackThreads``.
    """
    threads = parse_threads(text)
    if main_thread == 0 and threads:
        return list(threads.values())[-1]
    return threads.get(main_thread, ())


def parse_threads(text: str) -> dict[int, tuple[Frame, ...]]:
    """The frames of every thread in the text, by its pthread id."""
    threads: dict[int, list[Frame]] = {}
    current: list[Frame] | None = None
    for line in text.splitlines():
        if head := _THREAD.match(line):
            current = threads.setdefault(int(head[1], 16), [])
        elif current is not None and (found := _FRAME.match(line)):
            number = int(found[2]) if found[2].isdigit() else 0
            current.append(Frame(found[1], number, found[3]))
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
    """One Python thread as py-spy sees it: its kernel thread id (0 where not known), its name, its frames,
    innermost first, and whether it had the GIL."""

    thread_id: int
    name: str
    frames: tuple[Frame, ...]
    owns_gil: bool


def parse_spied_threads(text: bytes) -> tuple[SpiedThread, ...]:
    """All threads in the output of ``py-spy dump --json``; () when it is not what py-spy 0.4 prints."""
    return tuple(
        SpiedThread(t.os_thread_id or 0, t.thread_name or "", _frames(t), t.owns_gil)
        for t in _spied(text)
    )


def parse_pyspy(text: bytes, pid: int) -> tuple[Frame, ...]:
    """The main thread's frames in the output of ``py-spy dump --json``, innermost first.

    The main thread is the one whose kernel thread id is the process id; else the last one.
    Empty when the text is not what py-spy 0.4 prints.
    """
    threads = _spied(text)
    main = [t for t in threads if t.os_thread_id == pid or t.thread_name == "MainThread"]
    chosen = (main or threads[-1:])[:1]
    return _frames(chosen[0]) if chosen else ()


def _spied(text: bytes) -> list[_SpyThread]:
    try:
        return msgspec.json.decode(text, type=list[_SpyThread])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []


def _frames(thread: _SpyThread) -> tuple[Frame, ...]:
    # py-spy gives qualified names from Python 3.11 on, faulthandler never does.
    return tuple(Frame(f.filename, f.line, f.name.rpartition(".")[2]) for f in thread.frames)
