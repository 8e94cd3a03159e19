"""A rank reads one batch over and over, while the others go through their data.

Of the first four batches of each pass, and of one in 64 after that, some elements are hashed. This is
reported if six of them or more are the same on a rank, and the batches of each other rank differ, in a loop
that takes steps and whose gradients DDP averages over all ranks.

## Why it matters
This rank's share of every gradient comes from one batch, which the model learns by heart. The loss of this
rank falls, the accuracy does not rise, and nothing fails.

## What to do
Look at what this rank's dataset returns for two different indices: a file that is opened anew for each item,
a generator that is started again, an index that is taken modulo the size of a shard with one batch, a cache
whose key lacks the index.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.data.batch_comparison import (
    EXAMPLE_LOOP_FRAME,
    example_reading_member,
    find_repeating_members,
)
from allaboard.analysis.member_names import name_members
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Severity
from allaboard.facts.samples import sample_job


def check(view: JobView) -> Iterator[Claim]:
    members = find_repeating_members(view)
    if members:
        loop = max(members[0].loops, key=lambda p: len(p.samples))
        yield Claim(
            summary=f"{name_members(members)} reads one batch over and over at {loop.place}",
            who=tuple(m.who for m in members),
            evidence=(
                Evidence(
                    f"{len(loop.samples)} batches compared on rank {members[0].who.rank}, all of them "
                    f"{loop.samples[0].digest:08x}; those of the other ranks differ",
                    f"DataLoader at {loop.place.file}:{loop.place.line}",
                ),
            ),
            fix=f"compare what the dataset of rank {members[0].who.rank} returns for two indices; see its "
            "files, caches and seeds",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
        )


def _reads(rank: int, *digests: int) -> JobView:
    other_readers = (example_reading_member(r, *(10 * r + n for n in range(1, 7))) for r in (0, 2))
    return sample_job(example_reading_member(rank, *digests), *other_readers)


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("loops",),
    fires_on={
        "one of three ranks reads one batch six times, the others different ones": (
            _reads(1, *[7] * 6),
            f"worker 1 reads one batch over and over at {EXAMPLE_LOOP_FRAME}",
        )
    },
    silent_on={
        "one rank reads one batch twice": _reads(1, 7, 7, 8, 9, 10, 11),
        "only three batches of each rank were compared": sample_job(
            example_reading_member(0, 1, 2, 3), example_reading_member(1, 7, 7, 7)
        ),
        "a benchmark in which every rank repeats a batch of its own": sample_job(
            *(example_reading_member(r, *[r + 1] * 6, size=2) for r in range(2))
        ),
        "the contents of the rank's batches cannot be read": _reads(1, *[0] * 6),
        "two ranks that read the same six different batches": sample_job(
            *(example_reading_member(r, *range(1, 7), size=2) for r in range(2))
        ),
    },
    drill=("one-batch",),
)
