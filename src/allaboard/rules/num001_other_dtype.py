"""Ranks passed tensors of different dtypes to one collective.

## Why it matters
A collective moves bytes. PyTorch on gloo adds the bits of an int32 to those of a float32 and goes on: the
numbers are wrong, nobody hangs, the job ends with exit code 0. With other widths an innocent rank aborts.

## What to do
Cast before the call, on every rank: `tensor.to(torch.float32)`. Look for a metric that is an integer on
one rank (an empty shard: `0` instead of `0.0`), or for mixed precision that one rank has turned off.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.evidence.differs import Kind, claim, differing
from allaboard.facts import Claim, JobView, Stage
from allaboard.facts.samples import called, job, signature, stalled


def check(view: JobView) -> Iterator[Claim]:
    for found in differing(view, Kind.DTYPE):
        one, other = found.other, found.expected
        yield claim(
            view,
            found,
            f"passed {one.dtype}",
            other.dtype,
            "cast to one dtype on all ranks",
        )


_ONE = signature()
_OTHER = signature(dtype="int32")


RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    fires_on={
        "int32 among float32": (
            job(called(0, _ONE), called(1, _OTHER), called(2, _ONE)),
            "worker 1 passed int32 to all_reduce where the others passed float32",
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
    drill=("other-dtype",),
)
