"""Ranks passed different reduce operations to one collective.

## Why it matters
Each rank reduces in its own way: parts of the result are sums, parts are maxima. No rank hangs, and the job
exits with code 0 and wrong numbers.

## What to do
Pass the same `op=` on all ranks.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.collectives.collective_mismatch import (
    MismatchKind,
    argument_mismatch_claims,
    example_near_misses,
    example_one_of_three,
)
from allaboard.contracts import Rule
from allaboard.facts import Claim, JobView, Stage
from allaboard.facts.samples import sample_signature


def check(view: JobView) -> Iterator[Claim]:
    return argument_mismatch_claims(
        view,
        MismatchKind.REDUCE,
        lambda call: call.reduce,
        "pass the same reduce operation on all ranks",
    )


_ONE = sample_signature()
_OTHER = sample_signature(reduce="max")


RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    needs=("traces",),
    fires_on={
        "max among sums": (
            example_one_of_three(_ONE, _OTHER),
            "worker 1 passed max to all_reduce where the others passed sum",
        ),
    },
    silent_on=example_near_misses(_ONE, _OTHER),
    since="0.1",
    drill=("other-reduce",),
)
