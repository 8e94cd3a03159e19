"""Ranks train with batches of different sizes.

The sizes of the first four batches of each pass, and of one in 64 after that, are compared if DDP averages
gradients over all ranks. The last batch of a pass may be smaller, and is not looked at.

## Why it matters
DDP averages the ranks' gradients with equal weight. A sample in the smaller batch counts for more than one
in the larger, the learning rate fits neither, and every step waits for the larger batch.

## What to do
Use one `batch_size` for all ranks. If hosts differ in speed and the sizes are meant to differ, weigh each
rank's loss by its share: `loss * rows * world_size / total_rows`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from statistics import mode

from allaboard.analysis.data.batch_comparison import (
    MIN_SEEN_BATCHES,
    BatchRow,
    batches_side_by_side,
    example_reading_member,
)
from allaboard.analysis.member_names import conjugate_verb, name_members
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member, Severity
from allaboard.facts.rank_sets import name_ranks
from allaboard.facts.samples import sample_job


def check(view: JobView) -> Iterator[Claim]:
    for sides in batches_side_by_side(view).values():
        comparable = [s for s in sides if not s.may_be_last and all(b.rows > 0 for b in s.batches)]
        rows = {tuple(b.rows for b in s.batches) for s in comparable}
        # A size that changes from batch to batch (as many rows as fit a number of tokens) is intended.
        if len(comparable) >= MIN_SEEN_BATCHES and len(rows) == 1:
            sizes = next(iter(rows))
            if len(set(sizes)) > 1:
                yield _claim(
                    [m for m, p in _members_at_loader(view, comparable[0])], sizes, comparable
                )


def _members_at_loader(view: JobView, side: BatchRow) -> list[tuple[Member, object]]:
    return [(m, p) for m in view.members for p in m.loops if p.place == side.loop_frame]


def _claim(members: list[Member], sizes: tuple[int, ...], sides: list[BatchRow]) -> Claim:
    usual_size = mode(sizes)
    loader = sides[0].loop_frame
    odd_members = tuple(m for m, n in zip(members, sizes, strict=True) if n != usual_size)
    ranks_by_size: dict[int, list[int]] = defaultdict(list)
    for member, rows in zip(members, sizes, strict=True):
        ranks_by_size[rows].append(member.who.rank)
    return Claim(
        summary=f"{name_members(odd_members)} {conjugate_verb('train', odd_members)} with batches of "
        f"{', '.join(str(n) for n in sorted(ranks_by_size) if n != usual_size)}, the others of {usual_size}",
        who=tuple(m.who for m in odd_members),
        evidence=(
            Evidence(
                "; ".join(f"{name_ranks(r)}: {n} rows" for n, r in sorted(ranks_by_size.items())),
                f"{len(sides)} batches of the DataLoader at {loader.file}:{loader.line}",
            ),
        ),
        fix="one batch_size for all ranks, or weigh each rank's loss by its share of the rows",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
    )


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("loops",),
    fires_on={
        "one of three ranks trains with batches of half the size": (
            sample_job(
                *(
                    example_reading_member(r, 1 + r, 4 + r, 7 + r, rows=4 if r == 1 else 8)
                    for r in range(3)
                )
            ),
            "worker 1 trains with batches of 4, the others of 8",
        )
    },
    silent_on={
        "all ranks train with batches of the same size": sample_job(
            *(example_reading_member(r, 1, 2, 3) for r in range(3))
        ),
        "the sizes of the batches are not known": sample_job(
            *(example_reading_member(r, 1, 2, 3, rows=-r) for r in range(3))
        ),
        "only one batch can be compared": sample_job(
            example_reading_member(0, 1),
            example_reading_member(1, 1, rows=4),
            example_reading_member(2, 1),
        ),
    },
    drill=("batch-sizes-differ",),
)
