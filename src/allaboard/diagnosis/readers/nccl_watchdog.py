"""The watchdogs of PyTorch's NCCL backends: which collective timed out on each rank, and how far it had come.

They speak on the victims, then abort them (SIGABRT). The wording is from the source of PyTorch 2.2 to 2.9, of
its backend nccl2 (2.14), of torchcomms, and from logs that users have published. Timeouts, other collectives
and sizes, and lost peers were recorded with 2.11 (NCCL 2.28.9) on one H200, two ranks over sockets.
"""

from __future__ import annotations

import re

import msgspec

from allaboard.analysis.collectives.nccl_watchdogs import OWN_NUMBER_PREFIX
from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.diagnosis.wordings.torch_messages import OVERDUE_WORDS
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
    r"(?:, Timeout\(ms\)=(?P<timeout>\d+)\) ran for (?P<ran>\d+) milliseconds)?"
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

WITHOUT_NUMBERS = KnownMessage(
    key="Watchdog caught collective operation timeout: WorkNCCL(OpType=",
    pattern=r"Watchdog caught collective operation timeout: WorkNCCL\(OpType=(?P<op>\w+), "
    r"(?:TensorShape=\[[^\]]*\], )?Timeout\(ms\)=(?P<ms>\d+)\)",
    rule="LOG001",
    says="a rank waited {ms} ms in {op} for a peer that did not come",
    fix="compare the ranks' logs: the one that does not write this is the one to look at; while it hangs, "
    "py-spy dump --pid PID on each rank; PyTorch 2.1 and later record more (TORCH_NCCL_TRACE_BUFFER_SIZE)",
    proves_not="which peer: the rank whose watchdog speaks is a victim",
    awaits=True,
    sample="[E ProcessGroupNCCL.cpp:587] [Rank 2] Watchdog caught collective operation timeout: "
    "WorkNCCL(OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1804406 milliseconds before timing out.",
    source="from the source of PyTorch 1.8 to 2.0 (ProcessGroupNCCL.cpp)",
)
"""The message of PyTorch 1, which does not count collectives."""
ONLY_NUMBERS = KnownMessage(
    key="Timeout at NCCL work: ",
    pattern=r"Timeout at NCCL work: (?P<number>\d+), last enqueued NCCL work: (?P<enqueued>-?\d+), last "
    r"completed NCCL work: (?P<completed>-?\d+)",
    rule="LOG001",
    says="a rank waited in collective {number} until its timeout for a peer that did not come; it had "
    "completed {completed}",
    fix="allaboard diagnose LOG... with the logs of all ranks: who does not write this, or writes another "
    "number? While it hangs, on each host: allaboard diagnose",
    proves_not="which peer: the rank whose watchdog speaks is a victim",
    awaits=True,
    sample="[rank4]:[E114 15:08:00.554388780 ProcessGroupNCCL.cpp:1709] [PG 0 (default_pg) Rank 4] Timeout "
    "at NCCL work: 175, last enqueued NCCL work: 175, last completed NCCL work: 174.",
    source="its wording from the source of PyTorch 2.4 to 2.6 (ProcessGroupNCCL.cpp)",
)
"""What the watchdog adds to the message above, where the log has only this."""
_COMM = r"\[TC\]\[rank=\d{1,7}\](?:\[name=[^\]\n]{0,200}\])? "
"""Begins the lines of torchcomms, from which PyTorch's backend nccl2 is."""
_COMM_SOURCE = "from the source of torchcomms (TorchCommNCCL) and of PyTorch 2.14 (c10d/nccl2)"


def _comm_timeout(key: str, pattern: str, line: str) -> KnownMessage:
    """Return a message of torchcomms that a rank waited in vain; it names no collective."""
    return KnownMessage(
        key=key,
        pattern=_COMM + pattern,
        rule="LOG001",
        says="a rank waited in a collective until its timeout for a peer that did not come",
        fix="read the log of the rank that does not write this; allaboard diagnose on the folder of the "
        "flight recorder's traces names the collective; while it hangs: py-spy dump --pid PID on each rank",
        proves_not="which peer: the rank whose watchdog speaks is a victim",
        awaits=True,
        sample=f"[E826 10:00:00.1 WorkNCCL.cpp:147] [TC][rank=3][name=default_pg] {line}",
        source=_COMM_SOURCE,
    )


MESSAGES = (
    _comm_timeout(
        "] Operation timed out after ",
        r"Operation timed out after \d+ ms",
        "Operation timed out after 600123 ms",
    ),
    _comm_timeout(
        "timeout watchdog detected operation timeout",
        r"[^\n]{0,60}timeout - timeout watchdog detected operation timeout|"
        + _COMM
        + r"[^\n]{0,60}timeout watchdog detected operation timeout",
        "Aborting process due to timeout on rank 3 - timeout watchdog detected operation timeout",
    ),
    KnownMessage(
        key="sync error on rank ",
        pattern=_COMM
        + r"[^\n]{0,60}?\b[Aa]sync error on rank (?P<rank>\d+): (?P<what>[^\n(]{1,160})",
        rule="LOG010",
        says="NCCL failed on rank {rank}: {what}",
        fix="run once with NCCL_DEBUG=INFO; if it lost a peer, read the log of the rank that does not "
        "write this",
        proves_not="that it began on this rank: a peer that ended, and a link that broke, look the same",
        sample="[E826 10:00:00.2 ProcessGroupNCCLUtils.cpp:245] [TC][rank=2][name=default_pg] nccl hit async "
        "error on rank 2: remote process exited or there was a network error",
        source=_COMM_SOURCE,
    ),
    KnownMessage(
        key="NCCL Last Error: ",
        pattern=r"NCCL Last Error: (?P<what>[^\s][^\n]{1,200})",
        rule="LOG010",
        says="NCCL failed: {what}",
        fix="run once with NCCL_DEBUG=INFO: its lines before this one tell on which host, and with which "
        "device",
        proves_not="that the line of the traceback is at fault: NCCL failed where it was first used",
        sample="NCCL Last Error: Call to accept failed: Bad file descriptor",
        source=_COMM_SOURCE,
    ),
)


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    comm_messages = find_known_messages(exhibit, MESSAGES)
    if "atchdog" not in text and "ast enqueued NCCL work: " not in text:
        return Testimony(heard=comm_messages) if comm_messages else None
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
    named = OVERDUE_WORDS in text
    heard = find_known_messages(exhibit, (WITHOUT_NUMBERS if named else ONLY_NUMBERS,))
    heard = (*heard, *comm_messages)
    if not (overdue or glimpses or heard):
        return None
    return Testimony(overdue=overdue, glimpses=glimpses, heard=heard)


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
    late_ms = int(timeout["ran"]) - int(timeout["timeout"]) if timeout["ran"] else 0
    return msgspec.structs.replace(
        status,
        op=timeout["op"],
        elements=sizes,
        where=user_frames.get(status.rank),
        late_s=max(0.0, late_ms / 1000),
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
