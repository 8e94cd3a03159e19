"""Ranks passed tensors with different numbers of elements to one collective.

Only operations that require equal numbers are compared: all_reduce, reduce, broadcast, all_gather into one
tensor, reduce_scatter of one tensor. Gathered, scattered or exchanged tensors may be uneven.

## Why it matters
Some ranks return wrong values, others wait for bytes that never arrive.

## What to do
Pad to one length, or gather with the real sizes (`all_gather` the lengths first). If the last batch is
smaller on one rank, use `drop_last=True`.
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
        MismatchKind.ELEMENTS,
        lambda call: str(call.elements),
        "pass the same number of elements on all ranks",
        noun=" elements",
    )


_ONE = sample_signature()
_OTHER = sample_signature(elements=6, shape="6")


RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    needs=("traces",),
    fires_on={
        "six among four": (
            example_one_of_three(_ONE, _OTHER),
            "worker 1 passed 6 elements to all_reduce where the others passed 4",
        ),
    },
    silent_on={
        **example_near_misses(_ONE, _OTHER),
        "the backwards of two models": example_one_of_three(
            sample_signature("DDP backward", elements=6, shape="6"),
            sample_signature("DDP backward"),
        ),
    },
    since="0.1",
    drill=("other-elements",),
)
