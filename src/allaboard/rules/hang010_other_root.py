"""Ranks passed different roots to one collective.

## Why it matters
Each rank waits for a different sender, or sends to a rank that does not receive. The result is a hang, or the
values of the wrong rank.

## What to do
Pass the same `src=` or `dst=` on all ranks. It is a global rank, even within a subgroup; `group_src=` and
`group_dst=` count within the group.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.collectives.collective_mismatch import (
    MismatchKind,
    argument_mismatch_claims,
    example_near_misses,
    example_one_of_three,
)
from allaboard.contracts import Relations, Rule
from allaboard.facts import Claim, JobView
from allaboard.facts.outcome import Retry
from allaboard.facts.samples import sample_signature


def check(view: JobView) -> Iterator[Claim]:
    return argument_mismatch_claims(
        view, MismatchKind.ROOT, lambda call: f"root {call.root}", "pass the same root on all ranks"
    )


_ONE = sample_signature("broadcast", root=0)
_OTHER = sample_signature("broadcast", root=1)


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("traces",),
    fires_on={
        "one of three ranks passes root 1, the others root 0": (
            example_one_of_three(_ONE, _OTHER),
            "worker 1 passed root 1 to broadcast where the others passed root 0",
        )
    },
    silent_on=example_near_misses(_ONE, _OTHER),
    retry=Retry.NEVER,
    relations=Relations(explains=("LOG003",)),
    drill=("other-root",),
)
