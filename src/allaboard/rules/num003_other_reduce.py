"""Ranks asked one collective for different reduce operations.

## Why it matters
Each rank reduces in its own way: parts of the result are sums, parts are maxima. Nobody hangs, and the job
ends with exit code 0 and wrong numbers.

## What to do
Pass the same `op=` on all ranks.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.evidence.differs import Kind, claim, differing
from allaboard.facts import Claim, JobView, Stage
from allaboard.facts.samples import called, job, signature, stalled


def check(view: JobView) -> Iterator[Claim]:
    for found in differing(view, Kind.REDUCE):
        one, other = found.other, found.expected
        yield claim(
            view,
            found,
            f"passed {one.reduce}",
            other.reduce,
            "pass one reduce operation on all ranks",
        )


_ONE = signature()
_OTHER = signature(reduce="max")


RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    fires_on={
        "max among sums": (
            job(called(0, _ONE), called(1, _OTHER), called(2, _ONE)),
            "worker 1 passed max to all_reduce where the others passed sum",
        ),
    },
    silent_on={
        "the same": stalled(*(called(r, _ONE) for r in range(3))),
        "another operation": job(
            called(0, _ONE), called(1, signature("barrier", dtype="")), called(2, _ONE)
        ),
        "one is behind": job(called(0, _ONE, _OTHER), called(1, _ONE), called(2, _ONE, _OTHER)),
    },
    since="0.1",
    drill=("other-reduce",),
)
