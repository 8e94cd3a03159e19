"""Two members say that they are the same rank.

## Why it matters
PyTorch's error then names the rank that is absent, not the one that is there twice, and TensorFlow's
second task cannot bind its port while the first hangs. Nothing else that is said about a job can be
trusted before its members are who they say.

## What to do
Look where the rank is computed: a copied environment, two launchers started with the same
`--node-rank`, a `rank=` in code that ignores the process's own number.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Claim, Evidence, JobView, Member, Stage
from allaboard.facts.samples import declared, ended, gathering, held
from allaboard.rollcall.roll import Roll, roll_calls


def check(view: JobView) -> Iterator[Claim]:
    for roll in roll_calls(view):
        for twins in roll.twice:
            alive = tuple(m for m in twins if m.alive)
            if len(alive) > 1:
                yield _claim(roll, alive)


def _claim(roll: Roll, twins: tuple[Member, ...]) -> Claim:
    rank = twins[0].who.rank
    absent = f"; nobody is rank {', '.join(map(str, roll.missing))}" if roll.missing else ""
    pids = " and ".join(str(m.who.pid) for m in twins)
    return Claim(
        summary=f"{len(twins)} processes say that they are rank {rank}{absent}",
        who=tuple(m.who for m in twins),
        evidence=tuple(
            Evidence(f"pid {m.who.pid}: rank {rank} of {m.declared.world_size}", m.declared.origin)
            for m in twins
            if m.declared is not None
        ),
        fix=f"give one of pids {pids} the rank {roll.missing[0] if roll.missing else 'it should have'}",
        since=max(m.phase_since for m in twins),
    )


RULE = Rule(
    stage=Stage.STARTUP,
    reads=JobView,
    check=check,
    fires_on={
        "rank 1 twice": (
            gathering(held(0), held(1), held(2, declared=declared(1), who=held(1).who)),
            "2 processes say that they are rank 1; nobody is rank 2",
        ),
    },
    silent_on={
        "each is one": gathering(held(0), held(1), held(2)),
        "the first has ended": gathering(held(0), ended(1, code=1), held(1)),
    },
    since="0.1",
    drill=("wrong-rank", "tf-two-tasks", "same-rank", "same-task"),
)
