"""Ends of processes, as docker compose, horovodrun, Lightning and torch's spawn report those that they
started."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator

from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Exit, Glimpse, Testimony

_END = re.compile(
    r"^(?:(?P<host>[a-zA-Z0-9][\w.-]{0,80}[-_]\d{1,4}) exited with code (?P<code>\d{1,3})(?: \(restarting\))?"
    r"|Process (?P<rank>\d{1,7}) exit with status code (?P<status>\d{1,3})\."
    r"|(?:\[rank: \d+\] )?Child process with PID (?P<pid>\d{1,9}) terminated with code (?P<child>-?\d{1,3})\."
    r"[^\n]*"
    r"|torch\.multiprocessing\.spawn\.ProcessExitedException: process (?P<index>\d{1,7}) terminated with "
    r"(?:signal (?P<name>SIG[A-Z0-9]+)|exit code (?P<spawned>\d{1,3})))$",
    re.MULTILINE,
)
_TEARDOWN = re.compile(
    r"^(?:Aborting on container exit|Gracefully stopping|Terminating remaining workers)", re.M
)
"""From this message on, the parent ends the processes that are left."""
_VALID_SIGNALS = {int(s) for s in signal.Signals}
_SHELL_SIGNAL_OFFSET = 128
"""Containers and shells report a process that a signal ended by this exit code plus the signal's number."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    glimpses = tuple(_process_ends(exhibit))[:1000]
    return Testimony(glimpses=glimpses) if glimpses else None


def _process_ends(exhibit: Exhibit) -> Iterator[Glimpse]:
    text = exhibit.text
    teardown = _TEARDOWN.search(text)
    failed = False
    for match in _END.finditer(text):
        code = _exit_code(match)
        number = -code if code < 0 else code - _SHELL_SIGNAL_OFFSET
        killed = number if number in _VALID_SIGNALS else None
        # An exit code of a container or a child without a rank tells nothing more than its traceback.
        if code == 0 or (killed is None and (match["code"] or match["pid"])):
            continue
        after_failure = failed or (teardown is not None and teardown.start() < match.start())
        ours = after_failure and killed in (signal.SIGKILL, signal.SIGTERM)
        failed = True
        yield Glimpse(
            origin=exhibit.place_of_line(text.count("\n", 0, match.start())),
            rank=int(match["rank"] or -1),
            host=match["host"] or "",
            pid=int(match["pid"] or 0),
            guess=int(match["index"] or -1),
            exit=Exit(
                ended_at=0.0,
                code=code if killed is None else None,
                signal=killed,
                ours=ours,
                last_line=match[0][:300],
            ),
        )


def _exit_code(match: re.Match[str]) -> int:
    """Return the exit code, negative for a signal; 0 for a name that is no signal on this system."""
    if match["name"]:
        return -getattr(signal, match["name"], 0)
    return int(match["code"] or match["status"] or match["child"] or match["spawned"])


READER = LogReader(read=read_log)
