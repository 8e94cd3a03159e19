"""What any launcher or agent reports of the end of a member that it names by its number."""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.log_messages import find_known_messages
from allaboard.contracts import LogReader
from allaboard.diagnosis.wordings.reported_ends import CRASHES, MESSAGES, RANK_ENDS, TASK_ENDS
from allaboard.facts import Exhibit, Exit, Glimpse, Testimony
from allaboard.facts.signal_name import SHELL_SIGNAL_OFFSET
from allaboard.formats.dumps.python_tracebacks import TRACEBACK_HEAD

MAX_ENDS = 1000
"""Ends that are read of one log."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    ends = {glimpse.rank: glimpse for glimpse in _reported_ends(exhibit)}
    # Who crashed is the cause; those that return a code then noticed it.
    crashed = {rank: g for rank, g in ends.items() if g.exit is not None and g.exit.signal}
    heard = find_known_messages(exhibit, MESSAGES)
    glimpses = (*(crashed or ends).values(), *_ended_tasks(exhibit))
    return Testimony(heard=heard, glimpses=glimpses) if heard or glimpses else None


def _reported_ends(exhibit: Exhibit) -> Iterator[Glimpse]:
    text = exhibit.text
    # A traceback that names no rank is of the process that ended: its exit code tells nothing more.
    has_traceback = TRACEBACK_HEAD in text
    first_reports: dict[int, str] = {}
    for pattern in RANK_ENDS:
        for match, _ in zip(pattern.finditer(text), range(MAX_ENDS), strict=False):
            groups = match.groupdict()
            signal = int(groups.get("signal") or 0)
            code = int(groups.get("code") or 0)
            if (signal and signal not in CRASHES) or not (signal or code):
                continue
            if code and has_traceback:
                continue
            yield Glimpse(
                origin=exhibit.place_of_line(text.count("\n", 0, match.start())),
                rank=int(match["rank"]),
                host=groups.get("host") or "",
                exit=Exit(
                    ended_at=0.0,
                    signal=signal or None,
                    code=None if signal else code & 0xFF or 1,
                    # Members that ended alike are one report.
                    last_line=first_reports.setdefault(signal or -code, " ".join(match[0].split())),
                ),
            )


def _ended_tasks(exhibit: Exhibit) -> Iterator[Glimpse]:
    """Yield the tasks whose containers ended: with the code of a shell if a signal ended what ran in them."""
    text = exhibit.text
    if TRACEBACK_HEAD in text:
        return
    for pattern in TASK_ENDS:
        for match, _ in zip(pattern.finditer(text), range(MAX_ENDS), strict=False):
            code = int(match["code"])
            signal = code - SHELL_SIGNAL_OFFSET if code > SHELL_SIGNAL_OFFSET else -code
            if code == 0 or (signal > 0 and signal not in CRASHES):
                continue
            yield Glimpse(
                origin=exhibit.place_of_line(text.count("\n", 0, match.start())),
                task=f"{match['job'].lower()} {int(match['task'])}",
                exit=Exit(
                    ended_at=0.0,
                    signal=signal if signal > 0 else None,
                    code=None if signal > 0 else code & 0xFF,
                    last_line=match[0],
                ),
            )


READER = LogReader(read=read_log)
