"""Waits for the ssh of every host of `preflight --hosts`, and not for ever for one that says nothing."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Sequence

POLL_PERIOD_S = 0.05
END_MARGIN_S = 20.0
"""Seconds between the ends of the first and the last host where both did the same."""
END_GRACE_S = 5.0
"""Seconds in which a preflight that is asked to end has ended; 2 are its worker's."""
USAGE_ERROR_EXIT_CODE = 2


def is_overdue(
    now: float, started_at: float, last_heard_at: float, end_times: Sequence[float], limit_s: float
) -> bool:
    """Whether those still awaited will not answer. ``ends`` are when the others ended, ``heard`` when anyone
    was last heard of, ``within`` how long a preflight may take that does not move on; all in s."""
    if end_times:
        return now >= max(started_at + limit_s, max(end_times)) + END_MARGIN_S
    return now - max(started_at, last_heard_at) >= limit_s + END_MARGIN_S


def wait_for_hosts(
    processes: Sequence[subprocess.Popen[bytes]],
    last_heard_at: Callable[[], float],
    misuse: Callable[[], str],
    limit_s: float,
) -> list[int | None]:
    """The exit codes, None for who is overdue. Returns early where one was used wrongly, as all were, and
    where ``wrong`` has something to say."""
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
    """Ends what is left there by the end of its standard input, and then every ssh."""
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
