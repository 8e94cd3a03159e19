"""The watchdog of PyTorch's ProcessGroupNCCL: which collective timed out on each rank, and how far the rank
had come.

It speaks on the victims, then aborts them (SIGABRT). The wording is from the source of PyTorch 2.2 to 2.9 and
from logs that users have published; it was not recorded here, since it needs GPUs.
"""

from __future__ import annotations

import re

import msgspec

from allaboard.analysis.collectives.nccl_watchdogs import OWN_NUMBER_PREFIX
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Exit, Frame, Glimpse, Overdue, Place, Testimony

MAX_LINES = 100_000
"""Lines of the watchdog that are read in one exhibit."""
MAX_SHOWN_LINE = 300
"""Characters of a line that are shown."""
_LINE = re.compile(
    r"^[^\n]*(?:atchdog|NCCL work: |Stack trace of the failed collective)[^\n]*", re.M
)
_GLOBAL_RANK = re.compile(r"\[rank(\d{1,7})\]:")
_TIMEOUT = re.compile(
    r"\[Rank \d+\] Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(?P<number>\d+), "
    r"OpType=(?P<op>\w+), NumelIn=(?P<into>\d+), NumelOut=(?P<out>\d+)"
)
_GROUP = re.compile(r"\[PG (?P<group>[^\]\n]{1,120}?) Rank (?P<member>\d+)\]")
_STATUS = re.compile(
    r"last enqueued (?:NCCL )?work: (?P<enqueued>-?\d+), last completed (?:NCCL )?work: (?P<completed>-?\d+)",
    re.IGNORECASE,
)
_FAILED_NUMBER = re.compile(r"(?:at work sequence id|at work|Timeout at NCCL work): (\d+)")
_FRAME = re.compile(r"\n#\d+ ([^\n]{1,200}?) from ([^\n]{1,500}?):(\d{1,7})(?=\n)")
_STACK_HEAD = "Stack trace of the failed collective: "
_ABORT_MESSAGE = "Process group watchdog thread terminated with exception"
_SIGABRT = 6
"""Number of the signal that std::terminate() raises."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    if "atchdog" not in text and "ast enqueued NCCL work: " not in text:
        return None
    statuses: dict[tuple[int, str], Overdue] = {}
    timeouts: dict[tuple[int, int], re.Match[str]] = {}
    aborted: dict[int, Glimpse] = {}
    user_frames: dict[int, Frame] = {}
    number = counted_up_to = 0
    for line, _ in zip(_LINE.finditer(text), range(MAX_LINES), strict=False):
        number, counted_up_to = number + text.count("\n", counted_up_to, line.start()), line.start()
        rank = _speaking_rank(line[0], exhibit.rank)
        timeout = _TIMEOUT.search(line[0])
        if timeout is not None:
            timeouts.setdefault((rank, int(timeout["number"])), timeout)
        if _ABORT_MESSAGE in line[0] and rank not in aborted:
            aborted[rank] = _abort_glimpse(exhibit.place_of_line(number), line[0], rank)
        if (
            _STACK_HEAD in line[0]
            and rank not in user_frames
            and (frame := _user_frame(text, line.end())) is not None
        ):
            user_frames[rank] = frame
        status = _group_status(exhibit.place_of_line(number), line[0], rank)
        if status is not None:
            earlier = statuses.get((rank, status.group))
            statuses[rank, status.group] = (
                status if earlier is None else _merge_statuses(earlier, status)
            )
    overdue = tuple(_with_operation(status, timeouts, user_frames) for status in statuses.values())
    glimpses = tuple(g for r, g in aborted.items() if r >= 0)
    return Testimony(overdue=overdue, glimpses=glimpses) if overdue or glimpses else None


def _speaking_rank(line: str, log_rank: int) -> int:
    """Return the rank that the prefix names, or ``log_rank``.

    The numbers within a group are no ranks, except in the default group.
    """
    prefix = _GLOBAL_RANK.search(line)
    if prefix is not None:
        return int(prefix[1])
    group = _GROUP.search(line)
    if log_rank < 0 and group is not None and "default_pg" in group["group"]:
        return int(group["member"])
    return log_rank


def _group_status(place: Place, line: str, rank: int) -> Overdue | None:
    """Return what this line says of one group on this rank, or None."""
    group, status = _GROUP.search(line), _STATUS.search(line)
    if group is None or status is None:
        return None
    failed_number = _FAILED_NUMBER.search(line)
    return Overdue(
        rank=rank,
        group=group["group"].partition("GUID ")[2] or f"{OWN_NUMBER_PREFIX}{group['group']}",
        number=int(failed_number[1]) if failed_number is not None else 0,
        enqueued=int(status["enqueued"]),
        completed=int(status["completed"]),
        member=int(group["member"]),
        line=line[group.start() :][:MAX_SHOWN_LINE].strip(),
        place=place,
    )


def _merge_statuses(earlier: Overdue, later: Overdue) -> Overdue:
    """Return the first collective that timed out, with the furthest numbers that were reached."""
    base = earlier if earlier.number or not later.number else later
    return msgspec.structs.replace(
        base,
        enqueued=max(earlier.enqueued, later.enqueued),
        completed=max(earlier.completed, later.completed),
    )


def _with_operation(
    status: Overdue, timeouts: dict[tuple[int, int], re.Match[str]], user_frames: dict[int, Frame]
) -> Overdue:
    """Return the status with the operation and its size, which another line has."""
    timeout = timeouts.get((status.rank, status.number))
    if timeout is None:
        return status
    sizes = (int(timeout["into"]), int(timeout["out"]))
    return msgspec.structs.replace(
        status, op=timeout["op"], elements=sizes, where=user_frames.get(status.rank)
    )


def _abort_glimpse(place: Place, line: str, rank: int) -> Glimpse:
    """Return the end of a process that the watchdog aborts; as its last line tells, it is a victim."""
    last_line = line[line.find(_ABORT_MESSAGE) :][:MAX_SHOWN_LINE]
    return Glimpse(
        origin=place, rank=rank, exit=Exit(ended_at=0.0, signal=_SIGABRT, last_line=last_line)
    )


def _user_frame(text: str, begin: int) -> Frame | None:
    """Return the user's own line in the stack that follows, or None."""
    position = begin
    while (match := _FRAME.match(text, position)) is not None:
        frame = Frame(match[2], int(match[3]), match[1])
        if frame.is_user:
            return frame
        position = match.end()
    return None


READER = LogReader(read=read_log)
