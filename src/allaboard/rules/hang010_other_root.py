"""Ranks named different roots in one collective.

## Why it matters
Each waits for another sender, or sends to somebody who does not listen: a hang, or the values of the wrong
rank.

## What to do
Pass one `src=` or `dst=` on all ranks. It is a global rank, also within a subgroup; `group_src=` and
`group_dst=` count within the group.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.evidence.differs import Kind, claim, differing
from allaboard.facts import Claim, JobView, Stage
from allaboard.facts.samples import called, job, signature, stalled


def check(view: JobView) -> Iterator[Claim]:
    for found in differing(view, Kind.ROOT):
        one, other = found.other, found.expected
        yield claim(
            view,
            found,
            f"passed root {one.root}",
            f"root {other.root}",
            "name one root on all ranks",
        )


_ONE = signature("broadcast", root=0)
_OTHER = signature("broadcast", root=1)


RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    fires_on={
        "root 1 among root 0": (
            job(called(0, _ONE), called(1, _OTHER), called(2, _ONE)),
            "worker 1 passed root 1 to broadcast where the others passed root 0",
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
    drill=("other-root",),
)
