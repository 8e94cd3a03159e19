"""Two or more ranks wait for messages that do not match, and all others wait for them.

In a pipeline each stage waits for the previous or the next one. If one message is missing, soon all stages
wait; those that wait for each other are where it began.

## Why it matters
None of them can continue: each waits for a message, or a call, of another rank that waits.

## What to do
Look for the other side of each message that is named: it was skipped (a condition, another number of
micro-batches), or names another rank or tag.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.collectives.point_to_point import parse_message
from allaboard.analysis.member_names import name_by_rank
from allaboard.analysis.stalls.mutual_wait import (
    MAX_NAMED_RANKS,
    MutualWait,
    describe_position,
    find_mutual_wait,
    name_waiting_ranks,
)
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView
from allaboard.facts.outcome import Retry
from allaboard.facts.samples import stalled_job, waiting_member
from allaboard.facts.samples.group_waits import (
    job_waiting_for_peers,
    member_in_group_call,
    member_waiting_for_peer,
)


def check(view: JobView) -> Iterator[Claim]:
    mutual_wait = find_mutual_wait(view)
    if mutual_wait is not None and mutual_wait.message_knot:
        yield _claim(view, mutual_wait)


def _claim(view: JobView, mutual_wait: MutualWait) -> Claim:
    """Report the ranks that wait for each other; all others wait for them."""
    knot = mutual_wait.message_knot
    waits = [f"rank {m.who.rank} in {m.op.name}" for m in knot if m.op is not None]
    sides = ", ".join(
        f"rank {m.who.rank}'s {m.op.name}" for m in knot if m.op and parse_message(m.op.name)
    )
    shown_members = (*knot[:MAX_NAMED_RANKS], *(m for m in mutual_wait.waiting if m not in knot))
    return Claim(
        summary=f"{name_waiting_ranks(view, mutual_wait.waiting)} wait for each other: "
        f"{', '.join(waits[:MAX_NAMED_RANKS])}; the others wait for them",
        who=tuple(m.who for m in knot),
        evidence=tuple(
            Evidence(f"{name_by_rank([m])}: {describe_position(m)}", "stacks")
            for m in shown_members[: 2 * MAX_NAMED_RANKS]
        ),
        fix=f"look for the other side of {sides}: one was skipped, or names another rank or tag",
        certainty=Certainty.LIKELY,
        since=stalled_since(view),
    )


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "a pipeline of four stages, two of which wait to receive from each other": (
            job_waiting_for_peers({0: 1, 1: 2, 2: 1, 3: 2}),
            "all 4 members wait for each other: rank 1 in recv from rank 2, rank 2 in recv from rank 1; "
            "the others wait for them",
        ),
        "stages of a pipeline that wait in `Work.wait` for each other's `irecv`": (
            job_waiting_for_peers({0: 1, 1: 2, 2: 1, 3: 2}, "Work.wait for irecv"),
            "all 4 members wait for each other: rank 1 in Work.wait for irecv from rank 2, rank 2 in "
            "Work.wait for irecv from rank 1; the others wait for them",
        ),
        "rank 2 waits for a message from rank 0, which is in a collective of all three": (
            stalled_job(
                *(member_in_group_call(r, "1", 0, 1, 2, in_second_group=False) for r in (0, 1)),
                member_waiting_for_peer(2, 0),
            ),
            "all 3 members wait for each other: rank 0 in all_reduce, rank 2 in recv from rank 0; the others "
            "wait for them",
        ),
    },
    silent_on={
        (
            "two pairs of ranks that wait to receive: neither pair is the cause of the other"
        ): job_waiting_for_peers({0: 1, 1: 0, 2: 3, 3: 2}),
        "rank 0 waits for an `irecv` from rank 1, which does not wait for rank 0": stalled_job(
            member_waiting_for_peer(0, 1, "Work.wait for irecv"), waiting_member(1)
        ),
        "rank 2 waits for a message from rank 0, which is in a collective without rank 2": stalled_job(
            *(member_in_group_call(r, "1", 0, 1, in_second_group=False) for r in (0, 1)),
            member_waiting_for_peer(2, 0),
        ),
    },
    retry=Retry.NEVER,
    passes=True,
    drill=("missing-send", "missing-batched-send"),
)
