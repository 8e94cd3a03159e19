"""Ranks passed tensors of different dtypes to one collective.

## Why it matters
A collective moves bytes. PyTorch on gloo adds the bits of an int32 to those of a float32 and continues: the
numbers are wrong, no rank hangs, and the job exits with code 0. If the dtypes differ in width, a rank that is
not at fault aborts.

## What to do
Cast before the call, on every rank: `tensor.to(torch.float32)`. Look for a metric that is an integer on one
rank (an empty shard: `0` instead of `0.0`), or for mixed precision that is turned off on one rank.
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
        view, MismatchKind.DTYPE, lambda call: call.dtype, "cast to the same dtype on all ranks"
    )


_ONE = sample_signature()
_OTHER = sample_signature(dtype="int32")


RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    needs=("traces",),
    fires_on={
        "int32 among float32": (
            example_one_of_three(_ONE, _OTHER),
            "worker 1 passed int32 to all_reduce where the others passed float32",
        ),
    },
    silent_on=example_near_misses(_ONE, _OTHER),
    since="0.1",
    drill=("other-dtype",),
)
