"""One rank is late in every step (a straggler), and the others wait for it on their GPUs.

NCCL's collectives return at once, so the time in them does not show who waits. Instead allaboard compares
when the ranks of a host end their steps. If one ends each step a quarter of it or more after the others, it
looks at the stacks of that rank and of the first one, 24 times in about 12 s. The late rank is named if
the other one is found at a line that needs a result of its GPU (`loss.item()`, `.cpu()`) in a quarter of the
looks or more, and the late one hardly ever. A program that only runs ahead of its GPU, which is busy anyhow,
waits there on every rank, and is not reported.

## Why it matters
The job runs at the pace of one worker; the other GPUs are idle for about the share that the finding gives.

## What to do
The finding names the line at which the looks found the late rank more often than the other one. Look at what
only this rank does there in every step: its data (disk, shard, `num_workers`), logging, metrics, a debug
option, a busy or throttled core. `py-spy record -d 10 -o slow.svg --pid PID` shows more of it.

## Not seen
Ranks of different hosts are not compared with each other, nor ranks that enter a collective in less than
half of their steps (local SGD; collectives inside a CUDA graph are not counted). A script that waits for its
GPU before `optimizer.step()` returns (gradient scaling with `GradScaler`, for one) ends its steps at the same
time on all ranks. A slow GPU does not delay the program that feeds it: SLOW009 reports a GPU that is slowed
down.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.member_names import command_on_host, conjugate_verb, name_members
from allaboard.analysis.performance.late_ranks import (
    LateRanks,
    distinctive_place,
    find_late_ranks,
    is_held_up,
    valid_looks,
)
from allaboard.analysis.performance.stragglers import format_step_time
from allaboard.analysis.resources.resource_differences import find_differences
from allaboard.contracts import Relations, Rule
from allaboard.facts import Certainty, Claim, Evidence, Frame, JobView, Member, Severity
from allaboard.facts.samples import NOW, sample_job, sample_member, stalled_job
from allaboard.facts.stack import StackLook
from allaboard.facts.time_shares import StepLag


def check(view: JobView) -> Iterator[Claim]:
    for late in find_late_ranks(view):
        if is_held_up(late.ahead[0], late.slow[0]):
            yield _claim(view, late)


def _claim(view: JobView, late: LateRanks) -> Claim:
    slow, ahead = late.slow[0], late.ahead[0]
    differences = tuple(find_differences(view, late.slow, late.ahead))
    record = f"py-spy record -d 10 -o slow.svg --pid {slow.who.pid}"
    if differences:
        fix = f"look at what only it has: {command_on_host(view, slow, differences[0].look)}"
    else:
        fix = f"see what it does in a step: {command_on_host(view, slow, record)}"
    distinctive = distinctive_place(valid_looks(slow), valid_looks(ahead))
    return Claim(
        summary=f"{name_members(late.slow)} {conjugate_verb('slow', late.slow)} down most steps: "
        f"{'they end' if len(late.slow) > 1 else 'it ends'} each {format_step_time(late.step)} step "
        f"{format_step_time(late.seconds)} after the others, which wait for it"
        + (f"; it is often at {distinctive[0]}" if distinctive is not None else ""),
        who=tuple(m.who for m in late.slow),
        evidence=(
            Evidence(_describe_looks(ahead, slow), "stacks"),
            Evidence(_describe_looks(slow, ahead), "stacks"),
            Evidence(
                "ends its steps after the first rank of its host: "
                + ", ".join(
                    f"rank {m.who.rank} {format_step_time(m.step_lag.behind)}"
                    for m in (*late.slow[:4], *late.ahead[:4])
                    if m.step_lag is not None
                ),
                "black box, medians",
            ),
            *(difference.evidence for difference in differences),
        ),
        fix=fix,
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
    )


def _describe_looks(member: Member, other: Member) -> str:
    looks = valid_looks(member)
    distinctive = distinctive_place(looks, valid_looks(other))
    waiting = sum(look.waits for look in looks)
    return f"rank {member.who.rank} waits for a result in {waiting} of {len(looks)} looks" + (
        f"; it is at {distinctive[0]} in {distinctive[1]}" if distinctive is not None else ""
    )


_ITEM = Frame("/home/u/train.py", 50, "main", "total += loss.item()")
_DRAW = Frame("/home/u/train.py", 41, "draw", "time.sleep(0.06)")


def _late(rank: int, behind: float, waiting: int, frame: Frame, looks: int = 24) -> Member:
    """Return a member that was found waiting in so many looks, and at a place in all others."""
    return sample_member(
        rank,
        step_lag=StepLag(behind=behind, least=0.9 * behind, step=0.1, span=20.0, since=NOW - 30.0),
        looks=tuple(
            StackLook(
                taken_at=NOW - 15.0 + 0.4 * n,
                frame=_ITEM if n < waiting else frame,
                waits=n < waiting,
            )
            for n in range(looks)
        ),
    )


_WAITS = _late(0, 0.0, 15, _DRAW)

RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "a rank draws a picture in every step": (
            sample_job(_WAITS, _late(1, 0.06, 0, _DRAW), _late(2, 0.001, 14, _DRAW)),
            "worker 1 slows down most steps: it ends each 100 ms step 59 ms after the others, which wait for "
            "it; it is often at train.py:41 in draw",
        )
    },
    silent_on={
        "nobody has been looked at yet": sample_job(
            _late(0, 0.0, 0, _DRAW, looks=0), _late(1, 0.06, 0, _DRAW, looks=0)
        ),
        "both run ahead of GPUs that are busy, and one of them further": sample_job(
            _WAITS, _late(1, 0.06, 9, _DRAW)
        ),
        "the one that is ahead computes as long": sample_job(
            _late(0, 0.0, 2, _DRAW), _late(1, 0.06, 0, _DRAW)
        ),
        "the looks are from an earlier time at which one was late": sample_job(
            *(
                msgspec.structs.replace(
                    m, looks=tuple(msgspec.structs.replace(x, taken_at=1.0) for x in m.looks)
                )
                for m in (_WAITS, _late(1, 0.06, 0, _DRAW))
            )
        ),
        "two of three are late": sample_job(
            _WAITS, _late(1, 0.06, 0, _DRAW), _late(2, 0.061, 0, _DRAW)
        ),
        "ranks take turns in being late": sample_job(
            _WAITS,
            msgspec.structs.replace(
                _late(1, 0.06, 0, _DRAW),
                step_lag=StepLag(behind=0.06, least=0.001, step=0.1, span=20.0, since=NOW - 30.0),
            ),
        ),
        "the job has stalled": stalled_job(_WAITS, _late(1, 0.06, 0, _DRAW)),
    },
    passes=True,
    drill=("slow-unseen",),
    relations=Relations(measured=True),
)
