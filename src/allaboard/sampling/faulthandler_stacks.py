"""Asks processes by the probe's private signal for the stacks of their threads, which faulthandler writes."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from allaboard.blackbox.reader import OpenBox
from allaboard.facts import Frame
from allaboard.formats.dumps.thread_dumps.stack_frames import parse_faulthandler, parse_threads
from allaboard.hosts import pidfd, proc
from allaboard.launch import signals

FAULTHANDLER_TIMEOUT_S = 0.5
"""Seconds that a process gets to write its stacks."""


async def ask_faulthandler(box: OpenBox) -> list[tuple[Frame, ...]]:
    """Ask the process by its private signal for the stacks of its threads, the main one first.

    Empty if the handler or the file is not ours any more (an exec, a program that closes all its
    files), or if no answer comes.
    """
    # A real-time signal without a handler ends a process: it is sent only to the very process
    # (start time) that has the handler, and only if its descriptor still is our file.
    process_stat = proc.read_stat(box.pid)
    if (
        box.signum == 0
        or process_stat is None
        or process_stat.start_ticks != box.started
        or process_stat.state in "TtZX"
    ):
        return []
    if not proc.has_handler(box.pid, box.signum):
        return []
    # Who handles those on both sides of it, too, handles them all: ours is the program's own by now.
    if proc.has_handler(box.pid, box.signum - 1) and proc.has_handler(box.pid, box.signum + 1):
        return []
    if not proc.points_to(box.pid, box.stack_fd, box.stacks):
        return []
    try:
        # Its descriptor appends (O_APPEND): what it writes next begins the emptied file.
        os.truncate(box.stacks, 0)
        # By pidfd: its pid may be another process's by the time of the signal.
        process = pidfd.open_process(box.pid)
        try:
            signals.send_through_pidfd(process, box.signum)
        finally:
            os.close(process)
    except OSError:
        return []
    try:
        text = await read_finished_dump(box.stacks)
    except OSError:  # the job ended meanwhile, and its folder is gone
        return []
    box.dumped_bytes += len(text.encode(errors="replace"))
    main = parse_faulthandler(text, box.main_thread)
    # In a backward, the main thread's own frames are the outermost ones of these.
    other_threads = (f for f in parse_threads(text).values() if f != main[len(main) - len(f) :])
    return [main, *other_threads] if main else []


async def read_finished_dump(file: Path) -> str:
    """Return the dump once it has stopped growing, or what is there after the timeout."""
    size = 0
    for _ in range(int(FAULTHANDLER_TIMEOUT_S / 0.02)):
        await asyncio.sleep(0.02)
        grown = file.stat().st_size
        # Nothing marks the end of a dump: it is over when it has not grown between two looks.
        if grown and grown == size:
            break
        size = grown
    return file.read_text(errors="replace")
