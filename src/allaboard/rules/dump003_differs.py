"""The flight recorders show that ranks did not make the same call at one number of a group.

## Why it matters
Collectives are matched by their order. If one rank calls another operation, or the same with another shape
or type, some backends hang, some fail on an innocent rank, and some give wrong numbers and exit code 0.

## What to do
Compare the lines of code that are given: a branch on the rank, a different number of batches, a tensor
whose size depends on the data.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.collectives.flight_record_diff import (
    describe_recorded,
    find_record_mismatches,
    recorded_location,
)
from allaboard.contracts import Relations, Rule
from allaboard.facts import Claim, Evidence, Recording, Who
from allaboard.facts.rank_sets import name_ranks
from allaboard.facts.samples import recorded_collective, sample_recording


def check(recording: Recording) -> Iterator[Claim]:
    for mismatch in find_record_mismatches(recording):
        sides = [
            f"{name_ranks(ranks)} {describe_recorded(entry)}" for ranks, entry in mismatch.sides
        ]
        yield Claim(
            summary=f"collective {mismatch.number} of group {mismatch.group} is not the same on all: "
            + "; ".join(sides[:3]),
            who=tuple(Who(index=r, rank=r) for r in mismatch.outliers[:64]),
            evidence=tuple(
                Evidence(
                    f"{name_ranks(ranks)}: {describe_recorded(entry)}{recorded_location(entry)}",
                    "Flight Recorder",
                )
                for ranks, entry in mismatch.sides[:3]
            ),
            fix="make every rank of the group call the same collectives in the same order, with tensors of "
            "the same shape and type",
        )


_ONE_COLLECTIVE = [recorded_collective(r, 1) for r in range(3)]
RULE = Rule(
    reads=Recording,
    check=check,
    fires_on={
        "one rank calls broadcast, and the others all_reduce": (
            sample_recording(
                *_ONE_COLLECTIVE,
                recorded_collective(0, 2),
                recorded_collective(1, 2, "broadcast", 3),
                recorded_collective(2, 2),
            ),
            "collective 2 of group 0 default_pg is not the same on all: ranks 0 and 2 "
            "all_reduce([4] Float); rank 1 broadcast([3] Float)",
        ),
        "one rank reduces a tensor of another shape": (
            sample_recording(
                *_ONE_COLLECTIVE,
                recorded_collective(0, 2),
                recorded_collective(1, 2),
                recorded_collective(2, 2, size=6),
            ),
            "collective 2 of group 0 default_pg is not the same on all: ranks 0-1 "
            "all_reduce([4] Float); rank 2 all_reduce([6] Float)",
        ),
    },
    silent_on={
        "all ranks make the same call": sample_recording(*_ONE_COLLECTIVE),
        "a gather of tensors of different sizes": sample_recording(
            *(recorded_collective(r, 1, "gather", 4 + r) for r in range(3))
        ),
        "one rank has not made the last call yet": sample_recording(
            *_ONE_COLLECTIVE, recorded_collective(0, 2), recorded_collective(2, 2)
        ),
    },
    unstaged="it is read after the fact: its recordings of real runs are in tests/readers/samples",
    relations=Relations(explains=("EXIT005", "LOG001", "LOG003", "LOG007", "LOG009")),
)
