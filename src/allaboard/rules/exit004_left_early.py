"""A worker ended with exit code 0 while the others still train and wait for it.

## Why it matters
Its shard had one batch fewer, or an `if` let it out of the loop, or one rank alone goes on after the training
with what needs all of them (an evaluation, a prediction, saving a sharded model). As far as the one that left
knows, it ended well; the others wait in the next collective, or fail with a closed connection. torchrun then
blames rank 0.

## What to do
Compare the numbers of steps, and look at the line at which the others wait. Give every rank the same number
of batches (`DistributedSampler`, `drop_last=True`, `Dataset.repeat`), or use what the framework offers for
uneven inputs (torch's `Join`). If the line comes after the training, let all ranks get there, or take the
other ranks out of what it does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from allaboard.analysis.collectives.rank_conditional_advice import (
    rank_conditional_hint,
    user_frame_of,
)
from allaboard.analysis.failures.failure_causality import ended_at
from allaboard.analysis.member_names import agrees, names
from allaboard.analysis.stalls.early_exit import exited_by_itself, find_early_exits
from allaboard.contracts import Relations, Rule
from allaboard.facts import (
    Certainty,
    Claim,
    Evidence,
    GroupState,
    JobView,
    Member,
    Op,
    Phase,
    Stage,
)
from allaboard.facts.samples import ended, job, member, stalled, waiting

EVEN = {
    "torch": " (DistributedSampler, drop_last=True)",
    "tensorflow": " (Dataset.repeat, and steps_per_epoch or a number of steps that all share)",
}
"""How, by framework."""


def check(view: JobView) -> Iterator[Claim]:
    found = find_early_exits(view)
    if found is not None:
        yield _claim(*found)


def _claim(gone: list[Member], victims: list[Member]) -> Claim:
    ranks = ", ".join(str(m.who.rank) for m in victims)
    whose = "their" if len(victims) > 1 else "its"
    place = next(filter(None, map(user_frame_of, victims)), None)
    at = f" (at {place})" if place is not None else ""
    unknown = any(map(exited_by_itself, gone))
    how = "ended by itself (its exit code is not known)" if unknown else "ended with exit code 0"
    return Claim(
        summary=f"{names(gone)} {how} while rank {ranks} still trained",
        certainty=Certainty.LIKELY if unknown else Certainty.CERTAIN,
        who=tuple(m.who for m in gone),
        evidence=(
            *_steps((*gone[:3], *victims[:3])),
            Evidence(
                f"rank {ranks} {agrees('wait', victims)} in a collective or lost {whose} peer{at}",
                "stacks, exceptions",
            ),
            *(Evidence(m.exit.last_line, m.log) for m in gone[:1] if m.exit and m.exit.last_line),
        ),
        fix=f"give every rank the same number of batches{EVEN.get(gone[0].framework, '')}; if one may stop "
        "sooner (sys.exit, break), let all decide together: all_reduce the wish to stop"
        + rank_conditional_hint(gone[0], victims),
        since=ended_at(gone[0]),
    )


def _steps(some: tuple[Member, ...]) -> tuple[Evidence, ...]:
    """How many steps each has done. Equal numbers explain nothing: the others wait in their next."""
    if len({m.step for m in some}) == 1:
        return ()
    steps = ", ".join(f"rank {m.who.rank}: {m.step}" for m in some)
    return (Evidence(f"steps done: {steps}", "black box"),)


def _called(number: int) -> dict[str, Any]:
    """It has made so many calls in the group of all four."""
    state = GroupState("0", 1, number, 90.0, 4, (0, 1, 2, 3))
    return {"op": Op("gather", 41, 90.0, "0", number), "groups": (state,)}


_LOST = ("RuntimeError", "Connection closed by peer [127.0.0.1]:18334")
RULE = Rule(
    stage=Stage.EXIT,
    reads=JobView,
    check=check,
    needs=("exit",),
    fires_on={
        "the others wait": (
            stalled(waiting(0), ended(1, at=90.5, code=0), waiting(2)),
            "worker 1 ended with exit code 0 while rank 0, 2 still trained",
        ),
        "they wait in a call that it has not made": (
            stalled(
                waiting(0, **_called(21)),
                ended(1, at=90.5, code=0, member=_called(20)),
                waiting(2, **_called(21)),
                member(3),
            ),
            "worker 1 ended with exit code 0 while rank 0, 2 still trained",
        ),
        "nobody heard its exit code": (
            job(
                ended(0, at=95.3, raised=_LOST),
                ended(1, member={"phase": Phase.LEAVING, "phase_since": 95.0}),
                ended(2, at=95.5, raised=_LOST),
            ),
            "worker 1 ended by itself (its exit code is not known) while rank 0, 2 still trained",
        ),
        "they wait for its message": (
            stalled(
                waiting(0, op=Op("recv from rank 1", 41, 90.0)),
                ended(1, at=90.5, code=0),
                member(2),
            ),
            "worker 1 ended with exit code 0 while rank 0 still trained",
        ),
        "the others fell": (
            job(ended(0, at=95.3, raised=_LOST), ended(1, code=0), ended(2, at=95.5, raised=_LOST)),
            "worker 1 ended with exit code 0 while rank 0, 2 still trained",
        ),
    },
    silent_on={
        "the others are about to end too": job(member(0), ended(1, code=0), member(2)),
        "all ended well": job(ended(0, code=0), ended(1, code=0), ended(2, code=0)),
        "it has sent what it owed, and another one is on its way": stalled(
            waiting(0, op=Op("recv from rank 1", 41, 90.0)), ended(2, at=90.5, code=0), member(1)
        ),
        "it has made the call in which another one waits": stalled(
            waiting(0, **_called(21)), ended(2, at=90.5, code=0, member=_called(21)), member(1)
        ),
        "somebody fails after it, and the others with him": job(
            ended(0, at=96.1, raised=_LOST), ended(1, at=96.0, signal=9), ended(2, at=93.0, code=0)
        ),
        "a thread of it that trained has raised": job(
            ended(0, at=95.3, raised=_LOST),
            ended(
                1,
                code=0,
                member={
                    "notes": {"thread raised": "KeyError: 1", "thread ended": "40 steps trainer"}
                },
            ),
        ),
        "somebody failed first": job(
            ended(0, at=96, raised=_LOST), ended(1, at=95.5, code=0), ended(2, at=95, signal=9)
        ),
    },
    since="0.1",
    drill=("leaves-early", "spawned-leaves", "tf-leaves-early", "host-leaves-early"),
    relations=Relations(clean_exit=True),
)
