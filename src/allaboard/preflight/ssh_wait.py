"""Waits for the ssh of every host of `preflight --hosts`, and not for ever for one that says nothing."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Sequence

OFTEN = 0.05
MARGIN = 20.0
"""Seconds between the ends of the first and the last host where both did the same."""
GRACE = 5.0
"""Seconds in which a preflight that is asked to end has ended; 2 are its worker's."""
WRONG_USE = 2


def overdue(now: float, began: float, heard: float, ends: Sequence[float], within: float) -> bool:
    """Whether those still awaited will not answer. ``ends`` are when the others ended, ``heard`` when anyone
    was last heard of, ``within`` how long a preflight may take that does not move on; all in s."""
    if ends:
        return now >= max(began + within, max(ends)) + MARGIN
    return now - max(began, heard) >= within + MARGIN


def wait(
    running: Sequence[subprocess.Popen[bytes]],
    heard: Callable[[], float],
    wrong: Callable[[], str],
    within: float,
) -> list[int | None]:
    """The exit codes, None for who is overdue. Returns early where one was used wrongly, as all were, and
    where ``wrong`` has something to say."""
    began = time.monotonic()
    ends: dict[int, float] = {}
    while len(ends) < len(running):
        now = time.monotonic()
        ends |= {p.pid: now for p in running if p.pid not in ends and p.poll() is not None}
        if any(p.returncode == WRONG_USE for p in running) or wrong():
            break
        if len(ends) < len(running) and overdue(now, began, heard(), list(ends.values()), within):
            break
        time.sleep(OFTEN)
    return [p.poll() for p in running]


def end(running: Sequence[subprocess.Popen[bytes]], grace: float = GRACE) -> None:
    """Ends what is left there by the end of its standard input, and then every ssh."""
    for process in running:
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
    deadline = time.monotonic() + grace
    for process in running:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
