"""The flight recorders show that some ranks have entered a collective that others have not.

## Why it matters
The Flight Recorder numbers every collective of a group. If the job stands still, look at the ranks with the
lower number: they never entered the collective that the others wait in.

## What to do
Look at what the ranks that are behind do instead: their stacks, their logs. If the dumps were taken while
the job moved, a difference of one means nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.collectives.flight_record_diff import (
    describe_recorded,
    find_ranks_behind,
    recorded_location,
)
from allaboard.contracts import Relations, Rule
from allaboard.facts import Certainty, Claim, Evidence, Recording, Who
from allaboard.facts.rank_sets import name_ranks
from allaboard.facts.samples import recorded_collective, sample_recording


def check(recording: Recording) -> Iterator[Claim]:
    for gap in find_ranks_behind(recording):
        evidence = [
            Evidence(
                f"{name_ranks(gap.ahead)}: number {gap.missed.number} is "
                f"{describe_recorded(gap.missed)}{recorded_location(gap.missed)}",
                "Flight Recorder",
            )
        ]
        for rank, last_entry in list(gap.last_entered.items())[:3]:
            progress = (
                "entered none of this group"
                if last_entry is None
                else f"last entered number {last_entry.number}, "
                f"{describe_recorded(last_entry)}{recorded_location(last_entry)}"
            )
            evidence.append(Evidence(f"rank {rank} {progress}", "Flight Recorder"))
        yield Claim(
            summary=f"{name_ranks(gap.ranks)} did not enter {gap.missed.op}, collective "
            f"{gap.missed.number} of group {gap.group}; {name_ranks(gap.ahead)} did",
            who=tuple(Who(index=r, rank=r) for r in gap.ranks[:64]),
            evidence=tuple(evidence),
            fix=f"look at {name_ranks(gap.ranks)}: its log, or py-spy dump --pid PID while it hangs",
            certainty=Certainty.LIKELY,
        )


_TWO_COLLECTIVES = [recorded_collective(r, n) for r in range(3) for n in (1, 2)]
RULE = Rule(
    reads=Recording,
    check=check,
    fires_on={
        "one rank did not enter the last collective": (
            sample_recording(
                *_TWO_COLLECTIVES, recorded_collective(0, 3), recorded_collective(2, 3)
            ),
            "rank 1 did not enter all_reduce, collective 3 of group 0 default_pg; ranks 0 and 2 did",
        ),
        "one rank entered no collective at all": (
            sample_recording(*(e for e in _TWO_COLLECTIVES if e.rank != 1)),
            "rank 1 did not enter all_reduce, collective 1 of group 0 default_pg; ranks 0 and 2 did",
        ),
        "one rank is behind, and the others are not equally far": (
            sample_recording(
                *_TWO_COLLECTIVES,
                recorded_collective(0, 3),
                recorded_collective(2, 3),
                recorded_collective(2, 4),
            ),
            "rank 1 did not enter all_reduce, collective 3 of group 0 default_pg; ranks 0 and 2 did",
        ),
        "one rank is so far behind that the collective it missed is no longer recorded": (
            sample_recording(
                recorded_collective(0, 40),
                recorded_collective(1, 5),
                recorded_collective(2, 39),
                recorded_collective(2, 40),
            ),
            "rank 1 did not enter all_reduce, collective 39 of group 0 default_pg; ranks 0 and 2 did",
        ),
    },
    silent_on={"all ranks have entered the same collectives": sample_recording(*_TWO_COLLECTIVES)},
    unstaged="it is read after the fact: its recordings of real runs are in tests/readers/samples",
    relations=Relations(explains=("EXIT005", "LOG001", "LOG007")),
)
