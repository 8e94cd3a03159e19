"""Two threads of a rank call collectives of the same process group at the same time.

## Why it matters
Ranks match the calls of a group by their order. Which of two threads calls first is random, and differs
between ranks: calls are matched that do not belong together, and hang forever or mix their values.

## What to do
Give the second thread (an asynchronous checkpoint, a logger that gathers) a group of its own: `group =
dist.new_group()` on all ranks, then `process_group=group` there.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.member_names import name_first_members
from allaboard.analysis.stalls.mutual_wait import (
    MAX_NAMED_RANKS,
    MutualWait,
    describe_position,
    find_mutual_wait,
    name_waiting_ranks,
)
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Op
from allaboard.facts.samples import stalled_job, waiting_member


def check(view: JobView) -> Iterator[Claim]:
    mutual_wait = find_mutual_wait(view)
    if mutual_wait is not None and mutual_wait.two_threaded:
        yield _claim(view, mutual_wait)


def _claim(view: JobView, mutual_wait: MutualWait) -> Claim:
    first_member = mutual_wait.two_threaded[0]
    assert first_member.op is not None
    threads = f"{first_member.op.name} and {first_member.op.also}"
    return Claim(
        summary=f"two threads of {name_first_members(mutual_wait.two_threaded)} call collectives "
        f"of the same group at the same time ({threads}); "
        f"{name_waiting_ranks(view, mutual_wait.waiting)} wait for each other",
        who=tuple(m.who for m in mutual_wait.two_threaded),
        evidence=tuple(
            Evidence(
                f"rank {m.who.rank}: {describe_position(m)}; in another thread: {m.op.also}",
                "black box",
            )
            for m in mutual_wait.two_threaded[:MAX_NAMED_RANKS]
            if m.op is not None
        ),
        fix="the order of the two threads' calls can differ between ranks: give the one besides the "
        "main thread (an asynchronous checkpoint) a group of its own, process_group=dist.new_group()",
        certainty=Certainty.LIKELY,
        since=stalled_since(view),
    )


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "two threads of rank 0 call collectives of one group": (
            stalled_job(
                waiting_member(0, op=Op("all_gather", 41, 90.0, also="gather_object")),
                waiting_member(1, op=Op("gather_object", 41, 90.0, beside=True)),
            ),
            "two threads of worker 0 call collectives of the same group at the same time (all_gather and "
            "gather_object); all 2 members wait for each other",
        )
    },
    silent_on={
        "only one thread of each rank, not the main one, calls collectives": stalled_job(
            *(waiting_member(r, op=Op("all_reduce", 41, 90.0, beside=True)) for r in range(2))
        ),
        "two threads call collectives of one group, and data still flows": stalled_job(
            waiting_member(0, op=Op("all_gather", 41, 90.0, also="gather_object"), traffic=3e6),
            waiting_member(1, op=Op("gather_object", 41, 90.0, beside=True), traffic=3e6),
        ),
    },
    passes=True,
    drill=("shared-group",),
)
