"""All flight recorders end in the same collective, and a rank of its group has left no record.

## Why it matters
Ranks that all stand in one collective wait for somebody. If each of them has left a record, and one rank
of the group has not, that rank is the first to look at: it never came, was killed before it could write, or
hangs so hard that it cannot write.

## What to do
Look at that rank's log and at its host. If its record was only not collected, add it: it then shows which
collective that rank entered last.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.collectives.flight_record_diff import (
    describe_recorded,
    find_unrecorded_ranks,
    recorded_location,
)
from allaboard.contracts import Relations, Rule
from allaboard.facts import Certainty, Claim, Evidence, Recording, Who
from allaboard.facts.rank_sets import name_ranks
from allaboard.facts.samples import recorded_collective, sample_recording


def check(recording: Recording) -> Iterator[Claim]:
    gap = find_unrecorded_ranks(recording)
    if gap is None:
        return
    missing, witnesses = name_ranks(gap.ranks), name_ranks(gap.recorded_ranks)
    subject = f"{missing} {'have' if len(gap.ranks) > 1 else 'has'}"
    yield Claim(
        summary=f"{subject} left no record, and {witnesses} "
        f"{'all stand' if len(gap.recorded_ranks) > 1 else 'stands'} in collective "
        f"{gap.last_entry.number} of group {gap.group}, {gap.last_entry.op}",
        who=tuple(Who(index=r, rank=r) for r in gap.ranks[:64]),
        evidence=(
            Evidence(
                f"{witnesses}: number {gap.last_entry.number}, not completed, is "
                f"{describe_recorded(gap.last_entry)}{recorded_location(gap.last_entry)}",
                "Flight Recorder",
            ),
            Evidence(
                "that it never came is not proven: its record may only not have been collected",
                "what this does not prove",
            ),
        ),
        fix=f"look at {missing} first: its log, its host, or py-spy dump --pid PID while it hangs",
        certainty=Certainty.LIKELY,
    )


_TWO_OF_THREE = [recorded_collective(r, n, completed=n == 1) for r in (0, 2) for n in (1, 2)]
RULE = Rule(
    reads=Recording,
    check=check,
    fires_on={
        "one of three ranks has left no record": (
            Recording(
                entries=tuple(_TWO_OF_THREE), ranks=(0, 2), members={"0 default_pg": (0, 1, 2)}
            ),
            "rank 1 has left no record, and ranks 0 and 2 all stand in collective 2 of group 0 default_pg, "
            "all_reduce",
        ),
        "records of a PyTorch version that does not list the group's members": (
            Recording(entries=tuple(_TWO_OF_THREE), ranks=(0, 2)),
            "rank 1 has left no record, and ranks 0 and 2 all stand in collective 2 of group 0 default_pg, "
            "all_reduce",
        ),
    },
    silent_on={
        "all ranks have left a record": sample_recording(
            *(recorded_collective(r, n) for r in range(3) for n in (1, 2))
        ),
        "the last recorded collective is over": Recording(
            entries=tuple(recorded_collective(r, 2, completed=True) for r in (0, 2)),
            ranks=(0, 2),
            members={"0 default_pg": (0, 1, 2)},
        ),
        "one of the recorded ranks is behind the other": Recording(
            entries=(*_TWO_OF_THREE, recorded_collective(0, 3)),
            ranks=(0, 2),
            members={"0 default_pg": (0, 1, 2)},
        ),
        "the rank without a record is not in the group": Recording(
            entries=tuple(_TWO_OF_THREE), ranks=(0, 2), members={"0 default_pg": (0, 2)}
        ),
    },
    unstaged="it is read after the fact: its recordings are in tests/diagnosis/collectives",
    relations=Relations(reports_silence=True),
)
