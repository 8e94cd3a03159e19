"""Tracebacks that name no rank, in a file whose launcher tells which ranks failed: whose they are. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from allaboard.facts import Glimpse


def adopted(seen: Sequence[Glimpse]) -> list[Glimpse]:
    """The glimpses, in order. One traceback and one rank that ended with exit code 1 are one process. Of
    several, the exit codes tell nothing more: each is that of one of the tracebacks."""
    raised = {g.rank for g in seen if g.raised is not None}
    given: dict[int, Glimpse] = {}
    dropped: set[int] = set()
    for file in {g.origin.file for g in seen if _anonymous(g)}:
        own = [n for n, g in enumerate(seen) if g.origin.file == file and _anonymous(g)]
        ended = [
            n
            for n, g in enumerate(seen)
            if g.origin.file == file and _failed(g) and g.rank not in raised
        ]
        if len(own) == len(ended) == 1:
            told = seen[ended[0]]
            given[own[0]] = msgspec.structs.replace(
                seen[own[0]], rank=told.rank, host=told.host, pid=told.pid
            )
        else:
            dropped.update(ended)
    return [given.get(n, g) for n, g in enumerate(seen) if n not in dropped]


def _anonymous(one: Glimpse) -> bool:
    return (
        one.raised is not None and one.rank < 0 and one.guess < 0 and not one.pid and not one.host
    )


def _failed(one: Glimpse) -> bool:
    """As torchrun tells it, with the time: what Python's exit code is after an exception."""
    end = one.exit
    plain = one.raised is None and one.stack is None and one.rank >= 0
    return plain and end is not None and end.code == 1 and end.at > 0
