"""Ranks wait for each other in different process groups.

Each waits in a collective of a group that another of them has not called, and that one waits in a collective
of another group. The calls of each group are counted on every rank, so it is known which rank has not made
which call.

## Why it matters
None of these calls can complete: each needs a rank that waits in another.

## What to do
- Call the groups' collectives in the same order on all ranks.
- If the order is the same everywhere, look for a call that one rank skips: an early `continue`, or a
  condition that holds only on some ranks.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.parameter_servers import task_name
from allaboard.analysis.stalls.mutual_wait import (
    MAX_NAMED_RANKS,
    describe_entered_call,
    describe_position,
    find_mutual_wait,
)
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member
from allaboard.facts.samples import stalled_job, waiting_member
from allaboard.facts.samples.group_waits import member_in_group_call, member_in_newest_call


def check(view: JobView) -> Iterator[Claim]:
    mutual_wait = find_mutual_wait(view)
    if mutual_wait is not None and mutual_wait.group_cycle:
        yield _claim(view, mutual_wait.group_cycle)


def _claim(view: JobView, cycle: tuple[Member, ...]) -> Claim:
    calls = [describe_entered_call(view, m) for m in cycle]
    waits = [f"{task_name(m)} {'' if n else 'waits '}in {calls[n]}" for n, m in enumerate(cycle)]
    more = f" and {len(waits) - MAX_NAMED_RANKS} more" if len(waits) > MAX_NAMED_RANKS else ""
    absent_members = (*cycle[1:], cycle[0])
    rows = list(zip(cycle, calls, absent_members, strict=True))
    return Claim(
        summary=f"{', '.join(waits[:MAX_NAMED_RANKS])}{more}: the ranks call their groups in "
        "different orders, or one skipped a call",
        who=tuple(m.who for m in cycle),
        evidence=tuple(
            Evidence(
                f"rank {m.who.rank}: {describe_position(m)}, in {call}, which rank "
                f"{absent_member.who.rank} has not made",
                "black box",
            )
            for m, call, absent_member in rows[:MAX_NAMED_RANKS]
        ),
        fix="call the groups' collectives in the same order on all ranks, and check that none skips a call "
        "of its groups (an early continue, a condition that holds only on some ranks)",
        certainty=Certainty.LIKELY,
        since=stalled_since(view),
    )


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "two ranks call two groups in different orders": (
            stalled_job(member_in_group_call(0, "1", 0, 1), member_in_group_call(1, "2", 0, 1)),
            "worker 0 waits in call 21 of group 1, worker 1 in call 21 of group 2: the ranks call their "
            "groups in different orders, or one skipped a call",
        ),
        "three ranks wait in a cycle of three groups": (
            stalled_job(
                member_in_newest_call(0, ("1", 20, 0, 1), ("3", 21, 0, 2)),
                member_in_newest_call(1, ("1", 21, 0, 1), ("2", 20, 1, 2)),
                member_in_newest_call(2, ("2", 21, 1, 2), ("3", 20, 0, 2)),
            ),
            "worker 0 waits in call 21 of the group of ranks 0 and 2, worker 2 in call 21 of the group of "
            "ranks 1-2, worker 1 in call 21 of the group of ranks 0-1: the ranks call their groups in "
            "different orders, or one skipped a call",
        ),
    },
    silent_on={
        "two pairs of ranks, each of which waits in a group of its own": stalled_job(
            *(member_in_group_call(r, "1", 0, 1, in_second_group=False) for r in (0, 1)),
            *(member_in_group_call(r, "2", 2, 3, in_second_group=False) for r in (2, 3)),
        ),
        "both ranks wait in the same call of one group": stalled_job(
            member_in_group_call(0, "1", 0, 1), member_in_group_call(1, "1", 0, 1)
        ),
        "two ranks wait, and their groups are not known": stalled_job(
            waiting_member(0), waiting_member(1)
        ),
    },
    passes=True,
    drill=("crossed-groups",),
)
