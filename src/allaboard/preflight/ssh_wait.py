"""Waiting for the ssh of every host of `preflight --hosts`, but not for ever for one that says nothing."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Sequence

POLL_PERIOD_S = 0.05
"""Time between two looks at the processes."""
END_MARGIN_S = 20.0
"""How much later the last host may end than the first, if both did the same."""
END_GRACE_S = 5.0
"""How long a preflight may take to end when asked to; 2 s of it are its worker's."""
USAGE_ERROR_EXIT_CODE = 2
"""Exit code of a preflight whose command line or environment cannot be used."""


def is_overdue(
    now: float, started_at: float, last_heard_at: float, end_times: Sequence[float], limit_s: float
) -> bool:
    """Return True if the hosts that are still running will not answer.

    ``end_times`` are when the others ended, ``last_heard_at`` is when any host last printed a line,
    ``limit_s`` is how long a preflight may take that makes no progress; all in seconds of CLOCK_MONOTONIC.
    """
    if end_times:
        return now >= max(started_at + limit_s, max(end_times)) + END_MARGIN_S
    return now - max(started_at, last_heard_at) >= limit_s + END_MARGIN_S


def wait_for_hosts(
    processes: Sequence[subprocess.Popen[bytes]],
    last_heard_at: Callable[[], float],
    misuse: Callable[[], str],
    limit_s: float,
) -> list[int | None]:
    """Return the exit codes; None for a host that is overdue.

    It returns early if one host reports a usage error, since all were called alike, and if ``misuse``
    returns a message.
    """
    started_at = time.monotonic()
    end_times: dict[int, float] = {}
    while len(end_times) < len(processes):
        now = time.monotonic()
        end_times |= {
            p.pid: now for p in processes if p.pid not in end_times and p.poll() is not None
        }
        if any(p.returncode == USAGE_ERROR_EXIT_CODE for p in processes) or misuse():
            break
        if len(end_times) < len(processes) and is_overdue(
            now, started_at, last_heard_at(), list(end_times.values()), limit_s
        ):
            break
        time.sleep(POLL_PERIOD_S)
    return [p.poll() for p in processes]


def end_hosts(processes: Sequence[subprocess.Popen[bytes]], grace: float = END_GRACE_S) -> None:
    """End what still runs: closing its standard input ends the preflight on the other host; then every ssh
    is killed."""
    for process in processes:
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
    deadline = time.monotonic() + grace
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
