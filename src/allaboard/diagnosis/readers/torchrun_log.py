"""torchrun's summary of the workers that failed.

What it calls the root cause is the first failure that it saw: where a rank left with exit code 0, it names an
innocent one.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Exit, Glimpse, Testimony
from allaboard.facts.signal_name import signal_name

_FAILURE = re.compile(
    r"\n\[\d+\]:\n  time      : (?P<time>\S+)\n  host      : (?P<host>\S+)\n"
    r"  rank      : (?P<rank>\d+) \(local_rank: \d+\)\n"
    r"  exitcode  : (?P<code>-?\d+) \(pid: (?P<pid>\d+)\)"
)
_CLOSING_SIGNAL = re.compile(r"Sending process (\d+) closing signal (SIG[A-Z]+)")
MAX_FAILURES = 100_000
"""Failures that are read of one summary."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    if "Root Cause (first observed failure)" not in text:
        return None
    closing_signals = {int(m[1]): m[2] for m in _CLOSING_SIGNAL.finditer(text)}
    glimpses = []
    for match, _ in zip(_FAILURE.finditer(text), range(MAX_FAILURES), strict=False):
        code, pid = int(match["code"]), int(match["pid"])
        place = exhibit.place_of_line(text.count("\n", 0, match.start()) + 1)
        signal_number = -code if code < 0 else None
        process_end = Exit(
            ended_at=_unix_time(match["time"]),
            code=code if signal_number is None else None,
            signal=signal_number,
            ours=signal_number is not None
            and closing_signals.get(pid) == signal_name(signal_number),
        )
        glimpses.append(
            Glimpse(
                origin=place, rank=int(match["rank"]), pid=pid, host=match["host"], exit=process_end
            )
        )
    return Testimony(glimpses=tuple(glimpses)) if glimpses else None


def _unix_time(text: str) -> float:
    try:
        return datetime.strptime(text, "%Y-%m-%d_%H:%M:%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return 0.0


READER = LogReader(read=read_log)
