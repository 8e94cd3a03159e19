"""Which process a traceback ended: ranks for tracebacks that name none, and threads whose rank then waited.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from allaboard.analysis.failures.lost_peer import mentions_lost_peer
from allaboard.analysis.failures.post_traceback_output import OTHER_THREAD_DOUBT
from allaboard.facts import Glimpse, Raised


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
    time."""
    end = glimpse.exit
    is_only_an_end = glimpse.raised is None and glimpse.stack is None and glimpse.rank >= 0
    return is_only_an_end and end is not None and end.code == 1 and end.ended_at > 0
