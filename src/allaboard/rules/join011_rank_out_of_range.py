"""A worker has a rank outside its world size.

## Why it matters
Ranks go from 0 to the world size minus one. PyTorch does not check this: the worker joins the store and waits
forever, as do the others, which miss the rank that it should have. Usually the ranks are counted from 1, or
computed from the number of hosts instead of processes.

## What to do
Look at where the rank is computed, and count from 0: the last rank is the world size minus one. If there
are more processes than the world size says, correct the world size.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.roll_call.roll_call import RollCall, find_roll_calls
from allaboard.contracts import Rule
from allaboard.facts import Claim, Evidence, JobView, Member
from allaboard.facts.outcome import Retry
from allaboard.facts.samples import arrived_member, gathering_job, sample_declaration


def check(view: JobView) -> Iterator[Claim]:
    for roll in find_roll_calls(view):
        for member in roll.held_members:
            if (
                member.declared is not None
                and not 0 <= member.declared.rank < member.declared.world_size
            ):
                yield _claim(view, roll, member)


def _claim(view: JobView, roll: RollCall, member: Member) -> Claim:
    declaration = member.declared
    assert declaration is not None
    missing = roll.missing[0] if len(roll.missing) == 1 else None
    right = f"rank {missing}, which is missing," if missing is not None else "the right rank"
    # Its rank is wrong, so name it by its number on this host if that is known.
    counted = view.launched > 1 and not view.joined
    name = f"worker {member.worker}" if counted else member.who.name
    return Claim(
        summary=f"{name} has rank {declaration.rank} of {declaration.world_size}, but ranks go from 0 to "
        f"{declaration.world_size - 1}",
        who=(member.who,),
        evidence=(
            Evidence(
                f"rank {declaration.rank} of {declaration.world_size}",
                declaration.origin or declaration.call,
            ),
        ),
        fix=f"count ranks from 0: give it {right} or set the world size to {declaration.rank + 1} for all",
        since=member.phase_since,
    )


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "the ranks are counted from 1": (
            gathering_job(
                arrived_member(1),
                arrived_member(2),
                arrived_member(2, declared=sample_declaration(3)),
            ),
            "worker 2 has rank 3 of 3, but ranks go from 0 to 2",
        ),
        "rank 2 of 2, on a host that does not lead": (
            gathering_job(
                arrived_member(1, declared=sample_declaration(2, 2)), joined=True, launched=1
            ),
            "worker 1 has rank 2 of 2, but ranks go from 0 to 1",
        ),
    },
    silent_on={
        "three workers with ranks 0 to 2": gathering_job(
            arrived_member(0), arrived_member(1), arrived_member(2)
        )
    },
    retry=Retry.NEVER,
    drill=("rank-out-of-range",),
)
