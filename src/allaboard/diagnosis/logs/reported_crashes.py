"""Crashes that two programs report: faulthandler tells the line, and torchrun which process it was. Pure."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

import msgspec

from allaboard.analysis.failures.signal_advice import FATAL_ERROR, crash_advice, crash_place
from allaboard.facts import Glimpse, Heard

_KILLED_CHILD = re.compile(r"the process of local rank \d+ \(pid \d+\) was killed by (SIG[A-Z]+)$")
"""Matches what `parent_process_log` says of torchrun's line on a child."""


def join_reported_crashes(
    heard: Sequence[Heard], glimpses: Sequence[Glimpse]
) -> tuple[list[Heard], list[Glimpse]]:
    """Return both without a crash that they report twice: one child that torchrun names, and one stack of a
    process that nothing names, of the same signal and file."""
    joined, left = list(heard), list(glimpses)
    for message in heard:
        killed = _KILLED_CHILD.search(message.says)
        if killed is None:
            continue
        file = message.speakers[0].place.file
        reports = [h for h in joined if h.speakers[0].place.file == file and _is_of(h, killed[1])]
        crashes = [g for g in left if g.origin.file == file and _is_unnamed_crash(g, killed[1])]
        if len(reports) == len(crashes) == 1 and (end := crashes[0].exit) is not None:
            left.remove(crashes[0])
            place = crash_place(end.last_line)
            if place:
                joined[joined.index(message)] = msgspec.structs.replace(
                    message, says=f"{message.says}, at {place}", fix=crash_advice(place)
                )
    return joined, left


def _is_of(heard: Heard, signal_name: str) -> bool:
    killed = _KILLED_CHILD.search(heard.says)
    return killed is not None and killed[1] == signal_name


def _is_unnamed_crash(glimpse: Glimpse, signal_name: str) -> bool:
    end = glimpse.exit
    return (
        glimpse.rank < 0
        and not glimpse.pid
        and end is not None
        and end.signal == getattr(signal, signal_name, None)
        and end.last_line.startswith(FATAL_ERROR)
    )
