"""Ranks for tracebacks that name none, in a file whose launcher says which ranks failed. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from allaboard.facts import Glimpse


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
            attributed[tracebacks[0]] = msgspec.structs.replace(
                glimpses[tracebacks[0]], rank=failure.rank, host=failure.host, pid=failure.pid
            )
        else:
            dropped.update(failures)
    return [attributed.get(n, g) for n, g in enumerate(glimpses) if n not in dropped]


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
