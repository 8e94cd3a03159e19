"""The first failed process, as Open MPI's mpirun (and its prterun) reports it; MPICH names no rank."""

from __future__ import annotations

import re
import signal

from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Exit, Glimpse, Testimony

_SIGNAL = re.compile(
    r"noticed that process rank (?P<rank>\d{1,7}) with PID (?P<pid>\d{1,9}) on node (?P<host>\S{1,255})"
    r"\s+exited on\s+signal (?P<signal>\d{1,2})\b"
)
_CODE = re.compile(
    r"The first process to do so was:\s+Process name: \[[^\n]{1,200},(?P<rank>\d{1,7})\]\s+"
    r"Exit code: +(?P<code>\d{1,3})"
)
_VALID_SIGNALS = {int(s) for s in signal.Signals}


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    glimpses: list[Glimpse] = []
    for match in _SIGNAL.finditer(text):
        if int(match["signal"]) in _VALID_SIGNALS:
            line = " ".join(match[0].split())
            end = Exit(ended_at=0.0, signal=int(match["signal"]), last_line=line)
            glimpses.append(
                Glimpse(
                    origin=exhibit.place_of_line(text.count("\n", 0, match.start())),
                    rank=int(match["rank"]),
                    pid=int(match["pid"]),
                    host=match["host"],
                    exit=end,
                )
            )
    # A traceback that names no rank is of this process: its exit code tells nothing more.
    if "Traceback (most recent call last)" not in text:
        for match in _CODE.finditer(text):
            place = exhibit.place_of_line(text.count("\n", 0, match.start()))
            end = Exit(ended_at=0.0, code=int(match["code"]))
            glimpses.append(Glimpse(origin=place, rank=int(match["rank"]), exit=end))
    return Testimony(glimpses=tuple(glimpses[:1000])) if glimpses else None


READER = LogReader(read=read_log)
