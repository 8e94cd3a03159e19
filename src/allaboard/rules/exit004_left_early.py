"""A worker exited with code 0 while the others were still training and waited for it.

## Why it matters
Its shard had one batch fewer, or an `if` ended its loop early, or one rank alone continues after the training
with something that needs all ranks (an evaluation, a prediction, saving a sharded model). The worker that
exited reports success; the others wait in the next collective, or fail with a closed connection. torchrun
then blames rank 0.

## What to do
Compare the numbers of steps, and look at the line where the others wait. Give every rank the same number of
batches (`DistributedSampler`, `drop_last=True`, `Dataset.repeat`), or use the framework's support for uneven
inputs (torch's `Join`). If the line comes after the training, let all ranks reach it, or limit what it does
to one rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from allaboard.analysis.collectives.rank_conditional_advice import (
    rank_conditional_hint,
    user_frame_of,
)
from allaboard.analysis.failures.failure_causality import ended_at
from allaboard.analysis.member_names import conjugate_verb, name_members
from allaboard.analysis.stacks.example_awaited import example_awaited
from allaboard.analysis.stalls.early_exit import exited_by_itself, find_early_exits
from allaboard.contracts import Relations, Rule
from allaboard.facts import Certainty, Claim, Evidence, GroupState, JobView, Member, Op, Phase
from allaboard.facts.rank_sets import name_ranks
from allaboard.facts.samples import (
    PEER_LOST,
    ended_member,
    sample_job,
    sample_member,
    stalled_job,
    waiting_member,
)

EVEN_BATCHES_ADVICE = {
    "torch": " (DistributedSampler, drop_last=True)",
    "tensorflow": " (Dataset.repeat, and steps_per_epoch or a number of steps that all share)",
}
"""How to give all ranks the same number of batches, by framework."""


def check(view: JobView) -> Iterator[Claim]:
    early_exit = find_early_exits(view)
    if early_exit is not None:
        yield _claim(*early_exit)


def _claim(exited: list[Member], victims: list[Member]) -> Claim:
    ranks = name_ranks([m.who.rank for m in victims])
    whose = "their" if len(victims) > 1 else "its"
    user_frame = next(filter(None, map(user_frame_of, victims)), None)
    location = f" (at {user_frame})" if user_frame is not None else ""
    unknown = any(map(exited_by_itself, exited))
    how_exited = "exited by itself (exit code unknown)" if unknown else "exited with code 0"
    return Claim(
        summary=f"{name_members(exited)} {how_exited} while {ranks} "
        f"{'were' if len(victims) > 1 else 'was'} still training",
        certainty=Certainty.LIKELY if unknown else Certainty.CERTAIN,
        who=tuple(m.who for m in exited),
        evidence=(
            *_steps_evidence((*exited[:3], *victims[:3])),
            Evidence(
                f"{ranks} {conjugate_verb('wait', victims)} in a "
                f"collective or lost {whose} peer{location}",
                "stacks, exceptions",
            ),
            *(Evidence(m.exit.last_line, m.log) for m in exited[:1] if m.exit and m.exit.last_line),
        ),
        fix=f"give every rank the same number of batches{EVEN_BATCHES_ADVICE.get(exited[0].framework, '')}; "
        "if one may stop early (sys.exit, break), let all ranks decide together: all_reduce a stop flag"
        + rank_conditional_hint(exited[0], victims),
        since=ended_at(exited[0]),
    )


def _steps_evidence(members: tuple[Member, ...]) -> tuple[Evidence, ...]:
    """Return the number of steps of each member. Equal numbers explain nothing: the others wait in their next
    step."""
    if len({m.step for m in members}) == 1:
        return ()
    steps = ", ".join(f"rank {m.who.rank}: {m.step}" for m in members)
    return (Evidence(f"steps completed: {steps}", "black box"),)


def _called(number: int) -> dict[str, Any]:
    """Return fields of a member that has made this many calls in the group of all four."""
    state = GroupState("0", 1, number, 90.0, 4, (0, 1, 2, 3))
    return {"op": Op("gather", 41, 90.0, "0", number), "groups": (state,)}


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("exit",),
    fires_on={
        "the others wait in a collective for the worker that has exited": (
            example_awaited(ended_member(1, ended_at=90.5, code=0)),
            "worker 1 exited with code 0 while ranks 0 and 2 were still training",
        ),
        "two workers wait in a collective that the exited worker did not call": (
            stalled_job(
                waiting_member(0, **_called(21)),
                ended_member(1, ended_at=90.5, code=0, member=_called(20)),
                waiting_member(2, **_called(21)),
                sample_member(3),
            ),
            "worker 1 exited with code 0 while ranks 0 and 2 were still training",
        ),
        "a worker exited with an unknown code, and the others lost their peer": (
            sample_job(
                ended_member(0, ended_at=95.3, raised=PEER_LOST),
                ended_member(1, member={"phase": Phase.LEAVING, "phase_since": 95.0}),
                ended_member(2, ended_at=95.5, raised=PEER_LOST),
            ),
            "worker 1 exited by itself (exit code unknown) while ranks 0 and 2 were still training",
        ),
        "rank 0 waits for a message from the worker that has exited": (
            stalled_job(
                waiting_member(0, op=Op("recv from rank 1", 41, 90.0)),
                ended_member(1, ended_at=90.5, code=0),
                sample_member(2),
            ),
            "worker 1 exited with code 0 while rank 0 was still training",
        ),
        "the others lost their peer after the worker had exited": (
            sample_job(
                ended_member(0, ended_at=95.3, raised=PEER_LOST),
                ended_member(1, code=0),
                ended_member(2, ended_at=95.5, raised=PEER_LOST),
            ),
            "worker 1 exited with code 0 while ranks 0 and 2 were still training",
        ),
    },
    silent_on={
        "the others still train, and may be about to end too": sample_job(
            sample_member(0), ended_member(1, code=0), sample_member(2)
        ),
        "all workers exited with code 0": sample_job(
            ended_member(0, code=0), ended_member(1, code=0), ended_member(2, code=0)
        ),
        "rank 0 waits for a message from rank 1, while rank 2 has exited": stalled_job(
            waiting_member(0, op=Op("recv from rank 1", 41, 90.0)),
            ended_member(2, ended_at=90.5, code=0),
            sample_member(1),
        ),
        "the worker had made the call in which another one waits before it exited": stalled_job(
            waiting_member(0, **_called(21)),
            ended_member(2, ended_at=90.5, code=0, member=_called(21)),
            sample_member(1),
        ),
        "another worker was killed 3 seconds after this one had exited": sample_job(
            ended_member(0, ended_at=96.1, raised=PEER_LOST),
            ended_member(1, ended_at=96.0, signal=9),
            ended_member(2, ended_at=93.0, code=0),
        ),
        "the worker's training thread had raised an exception, which EXIT011 reports": sample_job(
            ended_member(0, ended_at=95.3, raised=PEER_LOST),
            ended_member(
                1,
                code=0,
                member={
                    "notes": {"thread raised": "KeyError: 1", "thread ended": "40 steps trainer"}
                },
            ),
        ),
        "another worker was killed before this one exited": sample_job(
            ended_member(0, ended_at=96, raised=PEER_LOST),
            ended_member(1, ended_at=95.5, code=0),
            ended_member(2, ended_at=95, signal=9),
        ),
    },
    drill=("leaves-early", "spawned-leaves", "tf-leaves-early", "host-leaves-early"),
    relations=Relations(clean_exit=True),
)
