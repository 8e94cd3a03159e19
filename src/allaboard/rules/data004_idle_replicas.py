"""Replicas of one process get no rows of the batches, or fewer than others.

Under MirroredStrategy one process feeds several devices: each global batch is cut into one piece per
replica. The pieces of the first eight batches, and of one in 64 after that, are looked at where a custom
loop takes them from a distributed dataset.

## Why it matters
A replica without rows computes nothing, and the others wait for it all the same: you pay for an idle
device. If pieces differ, a loss that is averaged in each replica gives the rows of the smaller pieces more
weight.

## What to do
`batch(n)` before `experimental_distribute_dataset` is the global batch, for all replicas together. Make it
a multiple of `strategy.num_replicas_in_sync`, with `drop_remainder=True` for the last one.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member, Severity
from allaboard.facts.samples import sample_job, sample_member

REPLICA_ROWS_NOTE = "replica rows"
MIN_BATCHES = 8
"""Smallest number of sampled batches to judge by: the last batch of a pass may be smaller."""


def check(view: JobView) -> Iterator[Claim]:
    for member in view.members:
        if REPLICA_ROWS_NOTE not in member.notes:
            continue
        counts = member.notes[REPLICA_ROWS_NOTE].split(";")
        if len(counts) == 4 and counts[0].isdecimal() and int(counts[0]) >= MIN_BATCHES:
            batches, uneven = int(counts[0]), counts[1] == counts[0]
            rows, empty = counts[2].split(), counts[3].split()
            idle = [str(i) for i, count in enumerate(empty) if count == counts[0]]
            if idle or uneven:
                yield _claim(member, batches, rows, idle)


def _claim(member: Member, batches: int, rows: list[str], idle: list[str]) -> Claim:
    name = member.who.name
    plural = "s" if len(idle) > 1 else ""
    return Claim(
        summary=f"{name}: replica{plural} {', '.join(idle[:8])} of {len(rows)} "
        f"get{'' if plural else 's'} no rows of any batch"
        if idle
        else f"{name}: its {len(rows)} replicas get different numbers of rows of every batch",
        who=(member.who,),
        evidence=(
            Evidence(
                f"rows of each replica in the last of them: {', '.join(rows[:16])}",
                f"{batches} batches of a distributed dataset",
            ),
        ),
        fix=f"make the global batch a multiple of {len(rows)}: "
        "dataset.batch(n * strategy.num_replicas_in_sync, drop_remainder=True)",
        severity=Severity.WARNING,
        certainty=Certainty.CERTAIN if idle else Certainty.LIKELY,
    )


def _with_note(text: str) -> JobView:
    return sample_job(sample_member(0, notes={REPLICA_ROWS_NOTE: text}))


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "global batches of 2 rows for 4 replicas": (
            _with_note("8;8;1 1 0 0;0 0 8 8"),
            "worker 0: replicas 2, 3 of 4 get no rows of any batch",
        ),
        "global batches of 7 rows for 3 replicas": (
            _with_note("16;16;3 3 1;0 0 0"),
            "worker 0: its 3 replicas get different numbers of rows of every batch",
        ),
    },
    silent_on={
        "all replicas get the same number of rows": _with_note("8;0;8 8;0 0"),
        "only the last batch of a pass is uneven": _with_note("8;1;8 2;0 0"),
        "only four batches were looked at": _with_note("4;4;1 0;0 4"),
        "the numbers of rows cannot be read": _with_note("many"),
    },
    drill=("empty-replicas", "uneven-replicas"),
)
