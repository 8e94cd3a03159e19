"""The watchdog of PyTorch's ProcessGroupNCCL: which collective was over its time on each rank, and how far
the rank had come. It speaks on the victims, then aborts them (SIGABRT).

Its wording is from the source of PyTorch 2.2 to 2.9 and from logs that users have published; it was not
recorded here, since it needs GPUs.
"""

from __future__ import annotations

import re

import msgspec

from allaboard.analysis.collectives.nccl_watchdogs import OWN_NUMBER_PREFIX
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Exit, Frame, Glimpse, Overdue, Place, Testimony

MOST = 100_000
"""Lines of it that are read of one exhibit."""
SHOWN = 300
"""Characters of a line that are shown."""
_LINE = re.compile(
    r"^[^\n]*(?:atchdog|NCCL work: |Stack trace of the failed collective)[^\n]*", re.M
)
_GLOBAL = re.compile(r"\[rank(\d{1,7})\]:")
_TIMEOUT = re.compile(
    r"\[Rank \d+\] Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(?P<number>\d+), "
    r"OpType=(?P<op>\w+), NumelIn=(?P<into>\d+), NumelOut=(?P<out>\d+)"
)
_GROUP = re.compile(r"\[PG (?P<group>[^\]\n]{1,120}?) Rank (?P<member>\d+)\]")
_STATUS = re.compile(
    r"last enqueued (?:NCCL )?work: (?P<enqueued>-?\d+), last completed (?:NCCL )?work: (?P<completed>-?\d+)",
    re.IGNORECASE,
)
_AT = re.compile(r"(?:at work sequence id|at work|Timeout at NCCL work): (\d+)")
_FRAME = re.compile(r"\n#\d+ ([^\n]{1,200}?) from ([^\n]{1,500}?):(\d{1,7})(?=\n)")
_STACK = "Stack trace of the failed collective: "
_ABORTS = "Process group watchdog thread terminated with exception"
_ABORT = 6
"""SIGABRT: what std::terminate() raises."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    if "atchdog" not in text and "ast enqueued NCCL work: " not in text:
        return None
    found: dict[tuple[int, str], Overdue] = {}
    timeouts: dict[tuple[int, int], re.Match[str]] = {}
    aborted: dict[int, Glimpse] = {}
    where: dict[int, Frame] = {}
    number = before = 0
    for line, _ in zip(_LINE.finditer(text), range(MOST), strict=False):
        number, before = number + text.count("\n", before, line.start()), line.start()
        rank = _rank(line[0], exhibit.rank)
        timeout = _TIMEOUT.search(line[0])
        if timeout is not None:
            timeouts.setdefault((rank, int(timeout["number"])), timeout)
        if _ABORTS in line[0] and rank not in aborted:
            aborted[rank] = _aborted(exhibit.place(number), line[0], rank)
        if _STACK in line[0] and rank not in where and (own := _own(text, line.end())) is not None:
            where[rank] = own
        one = _status(exhibit.place(number), line[0], rank)
        if one is not None:
            known = found.get((rank, one.group))
            found[rank, one.group] = one if known is None else _merged(known, one)
    overdue = tuple(_with(one, timeouts, where) for one in found.values())
    glimpses = tuple(g for r, g in aborted.items() if r >= 0)
    return Testimony(overdue=overdue, glimpses=glimpses) if overdue or glimpses else None


def _rank(line: str, otherwise: int) -> int:
    """As the prefix tells; a group's own numbers are no ranks, but in the default group."""
    told = _GLOBAL.search(line)
    if told is not None:
        return int(told[1])
    group = _GROUP.search(line)
    if otherwise < 0 and group is not None and "default_pg" in group["group"]:
        return int(group["member"])
    return otherwise


def _status(place: Place, line: str, rank: int) -> Overdue | None:
    """What this line says of one group on this rank; None where it says nothing of it."""
    group, status = _GROUP.search(line), _STATUS.search(line)
    if group is None or status is None:
        return None
    at = _AT.search(line)
    return Overdue(
        rank=rank,
        group=group["group"].partition("GUID ")[2] or f"{OWN_NUMBER_PREFIX}{group['group']}",
        number=int(at[1]) if at is not None else 0,
        enqueued=int(status["enqueued"]),
        completed=int(status["completed"]),
        member=int(group["member"]),
        line=line[group.start() :][:SHOWN].strip(),
        place=place,
    )


def _merged(known: Overdue, more: Overdue) -> Overdue:
    """The first collective that was over its time, and the furthest that was reached."""
    first = known if known.number or not more.number else more
    return msgspec.structs.replace(
        first,
        enqueued=max(known.enqueued, more.enqueued),
        completed=max(known.completed, more.completed),
    )


def _with(
    one: Overdue, timeouts: dict[tuple[int, int], re.Match[str]], where: dict[int, Frame]
) -> Overdue:
    """With the operation and its size, which another line tells."""
    told = timeouts.get((one.rank, one.number))
    if told is None:
        return one
    sizes = (int(told["into"]), int(told["out"]))
    return msgspec.structs.replace(one, op=told["op"], elements=sizes, where=where.get(one.rank))


def _aborted(place: Place, line: str, rank: int) -> Glimpse:
    """The process ends by this; it is a victim, as its last line tells."""
    said = line[line.find(_ABORTS) :][:SHOWN]
    return Glimpse(origin=place, rank=rank, exit=Exit(at=0.0, signal=_ABORT, last_line=said))


def _own(text: str, begin: int) -> Frame | None:
    """The user's own line in the stack that follows."""
    at = begin
    while (match := _FRAME.match(text, at)) is not None:
        frame = Frame(match[2], int(match[3]), match[1])
        if frame.is_user:
            return frame
        at = match.end()
    return None


READER = LogReader(read=read_log)
