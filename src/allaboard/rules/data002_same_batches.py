"""Every rank reads the same batches.

Of the first four batches of each pass, and of one in 64 after that, some elements are hashed and compared
between ranks. This is reported only if DDP averages the gradients over all ranks, in a loop that takes
steps.

## Why it matters
All ranks compute the same gradients, and their mean is that of one rank: the job pays for all its devices
and learns as fast as with one. Nothing fails.

## What to do
In PyTorch, use `sampler=DistributedSampler(dataset)` and `sampler.set_epoch(epoch)`. If you read the data
by hand, use `dataset.shard(size, rank)` or `data[rank::size]`. Ranks that split one model between them
rightly read the same data; they do not wrap it in DDP over all ranks.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.data.batch_comparison import (
    MIN_SEEN_BATCHES,
    BatchRow,
    batches_side_by_side,
    example_reading_member,
)
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Severity
from allaboard.facts.samples import sample_job


def check(view: JobView) -> Iterator[Claim]:
    for sides in batches_side_by_side(view).values():
        digests = [{b.digest for b in side.batches} for side in sides]
        readable_digests = [d for d in digests if 0 not in d]
        # Batches that are all equal (a benchmark on zeros) prove nothing.
        all_equal = len(readable_digests) >= MIN_SEEN_BATCHES and all(
            len(d) == 1 for d in readable_digests
        )
        if all_equal and len(set.union(*readable_digests)) >= MIN_SEEN_BATCHES:
            yield _claim(view, sides)


def _claim(view: JobView, sides: tuple[BatchRow, ...]) -> Claim:
    members = [m for m in view.alive if not m.launcher]
    first_batch, loader = sides[0].batches[0], sides[0].loop_frame
    return Claim(
        summary=f"all {len(members)} ranks read the same batches at {loader}",
        who=tuple(m.who for m in members[:8]),
        evidence=(
            Evidence(
                f"{len(sides)} batches compared, the first is {first_batch.digest:08x} on every rank",
                f"DataLoader at {loader.file}:{loader.line}",
            ),
            Evidence("gradients are averaged over all of them", "DDP"),
        ),
        fix=f"give the DataLoader at {loader.file}:{loader.line} sampler=DistributedSampler(dataset); if it "
        "has one, see that each rank passes its own rank, and draws random items from a seed of its own",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
    )


_SAME_BATCHES = tuple(example_reading_member(r, 11, 12, 13, 14) for r in range(3))


def _without_ddp(rank_count: int) -> JobView:
    """Return a job whose ranks rightly read the same data: they split one model, without DDP."""
    members = tuple(msgspec.structs.replace(m, groups=()) for m in _SAME_BATCHES[:rank_count])
    return sample_job(*members)


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("loops",),
    fires_on={
        "three ranks under DDP that read the same four batches": (
            sample_job(*_SAME_BATCHES),
            "all 3 ranks read the same batches at train.py:30 in train",
        )
    },
    silent_on={
        "each rank reads batches of its own": sample_job(
            *(example_reading_member(r, 11 + r, 21 + r, 31 + r) for r in range(3))
        ),
        "one of three ranks reads other batches": sample_job(
            *_SAME_BATCHES[:2], example_reading_member(2, 21, 22, 23, 24)
        ),
        "a benchmark on zeros, whose batches are all equal": sample_job(
            *(example_reading_member(r, 7, 7, 7, 7) for r in range(3))
        ),
        "ranks that split one model between them, without DDP": _without_ddp(3),
        "batches on a device, whose contents are not read": sample_job(
            *(example_reading_member(r, 0, 0, 0, 0) for r in range(3))
        ),
        "only two batches can be compared": sample_job(
            *(example_reading_member(r, 11, 12) for r in range(3))
        ),
    },
    drill=("same-batches",),
)
