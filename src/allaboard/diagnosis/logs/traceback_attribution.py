"""Which process a traceback ended: ranks for tracebacks that name none, threads whose rank then waited, and
crashes that two programs report.

Pure.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

import msgspec

from allaboard.analysis.failures.lost_peer import mentions_lost_peer
from allaboard.analysis.failures.signal_advice import crash_advice, crash_place
from allaboard.analysis.log_ends.post_traceback_output import OTHER_THREAD_DOUBT
from allaboard.facts import Glimpse, Heard, Raised
from allaboard.formats.dumps.thread_dumps.faulthandler import FATAL_ERROR

_KILLED_CHILD = re.compile(
    r"the process of local rank (?P<local>\d+) \(pid \d+\) was killed by (?P<signal>SIG[A-Z]+)$"
)
"""Matches what `parent_process_log` says of torchrun's line on a child."""
_GCLOUD = "Command execution on worker "
"""In the line of gcloud on a worker whose command failed; all of them write into one log without a prefix."""


def attribute_tracebacks(glimpses: Sequence[Glimpse]) -> list[Glimpse]:
    """Return the glimpses, in order, with ranks for tracebacks.

    A single traceback and a single rank that ended with exit code 1 are one process. If there are several,
    the exit codes add nothing: each is that of one of the tracebacks.
    """
    raised = {g.rank for g in glimpses if g.raised is not None}
    attributed: dict[int, Glimpse] = {}
    dropped: set[int] = set()
    for file in {g.origin.file for g in glimpses if _is_anonymous(g)}:
        tracebacks = [
            n for n, g in enumerate(glimpses) if g.origin.file == file and _is_anonymous(g)
        ]
        failures = [
            n
            for n, g in enumerate(glimpses)
            if g.origin.file == file and _has_exit_code_1(g) and g.rank not in raised
        ]
        if len(tracebacks) == len(failures) == 1:
            failure = glimpses[failures[0]]
            # Its process ended with it, so nothing caught it.
            attributed[tracebacks[0]] = msgspec.structs.replace(
                glimpses[tracebacks[0]],
                rank=failure.rank,
                host=failure.host,
                pid=failure.pid,
                doubt="",
            )
        else:
            dropped.update(failures)
    return [attributed.get(n, g) for n, g in enumerate(glimpses) if n not in dropped]


def settle_threads(glimpses: Sequence[Glimpse]) -> list[Glimpse]:
    """Return the glimpses with an exception of a thread as what ended a rank that then only waited.

    Whoever lost its peers, or waited for them in vain, did so after one of its own threads had failed.
    """
    failed_threads = {
        g.rank
        for g in glimpses
        if g.rank >= 0
        and g.raised is not None
        and g.doubt == OTHER_THREAD_DOUBT
        and not mentions_lost_peer(g.raised)
    }
    waited = {
        g.rank
        for g in glimpses
        if g.rank in failed_threads and g.raised is not None and _is_wait(g, g.raised)
    }
    return [
        msgspec.structs.replace(g, doubt="")
        if g.rank in waited and g.doubt == OTHER_THREAD_DOUBT
        else g
        for g in glimpses
        if not (g.rank in waited and g.raised is not None and _is_wait(g, g.raised))
    ]


def _is_wait(glimpse: Glimpse, raised: Raised) -> bool:
    return glimpse.doubt != OTHER_THREAD_DOUBT and mentions_lost_peer(raised)


def _is_anonymous(glimpse: Glimpse) -> bool:
    return (
        glimpse.raised is not None
        and glimpse.rank < 0
        and glimpse.guess < 0
        and not glimpse.pid
        and not glimpse.host
    )


def _has_exit_code_1(glimpse: Glimpse) -> bool:
    """Return True for an end with Python's exit code after an exception, as torchrun reports it, with the
    time, or gcloud for a worker of a TPU."""
    end = glimpse.exit
    if end is None or glimpse.raised is not None or glimpse.stack is not None or glimpse.rank < 0:
        return False
    return end.code == 1 and (end.ended_at > 0 or _GCLOUD in end.last_line)


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
        if _is_named_crash_there(left, file, killed) and message in joined:
            joined.remove(message)
            continue
        reports = [
            h for h in joined if h.speakers[0].place.file == file and _is_of(h, killed["signal"])
        ]
        crashes = [
            g for g in left if g.origin.file == file and _is_unnamed_crash(g, killed["signal"])
        ]
        if len(reports) == len(crashes) == 1 and (end := crashes[0].exit) is not None:
            left.remove(crashes[0])
            location = crash_place(end.last_line)
            if location:
                joined[joined.index(message)] = msgspec.structs.replace(
                    message, says=f"{message.says}, at {location}", fix=crash_advice(location)
                )
    return joined, left


def _is_named_crash_there(glimpses: Sequence[Glimpse], file: str, killed: re.Match[str]) -> bool:
    """Return True if the file tells that the rank of that number ended so: the launcher tells it again."""
    return any(
        g.origin.file == file
        and g.rank == int(killed["local"])
        and g.exit is not None
        and g.exit.signal == getattr(signal, killed["signal"], None)
        and g.exit.last_line.startswith(FATAL_ERROR)
        for g in glimpses
    )


def _is_of(heard: Heard, signal_name: str) -> bool:
    killed = _KILLED_CHILD.search(heard.says)
    return killed is not None and killed["signal"] == signal_name


def _is_unnamed_crash(glimpse: Glimpse, signal_name: str) -> bool:
    end = glimpse.exit
    return (
        glimpse.rank < 0
        and not glimpse.pid
        and end is not None
        and end.signal == getattr(signal, signal_name, None)
        and end.last_line.startswith(FATAL_ERROR)
    )
