"""The members do not agree on how many they are.

## Why it matters
In PyTorch the init of the rank with the smaller world size succeeds, and its first collective hangs.
A member that believes it is alone trains alone, in silence, and ends with exit code 0.

## What to do
Give every member the same world size. Look at who differs: an old environment variable, a
TF_CONFIG without `cluster`, a launcher that was started with another number of hosts.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.evidence.naming import names
from allaboard.facts import Claim, Evidence, JobView, Member, Phase, Stage
from allaboard.facts.samples import declared, gathering, held
from allaboard.rollcall.roll import Roll, roll_calls


def check(view: JobView) -> Iterator[Claim]:
    for roll in roll_calls(view):
        present = {s: ms for s, ms in roll.sizes.items() if any(_now(m) for m in ms)}
        if len(present) > 1 and roll.settled(view.now):
            yield _claim(roll)


def _now(member: Member) -> bool:
    return member.alive and member.phase <= Phase.JOINING


def _claim(roll: Roll) -> Claim:
    odd = tuple(m for size, ms in roll.sizes.items() if size != roll.size for m in ms)
    told = {m.declared.world_size for m in odd if m.declared is not None}
    others = ", ".join(str(s) for s in sorted(told))
    return Claim(
        summary=f"{names(odd)} expects a world of {others}, the others of {roll.size}",
        who=tuple(m.who for m in odd),
        evidence=tuple(
            Evidence(f"{m.who.name}: world size {m.declared.world_size}", m.declared.origin)
            for m in (*odd[:2], roll.sizes[roll.size][0])
            if m.declared is not None
        ),
        fix=f"set the world size of {names(odd)} to {roll.size} (WORLD_SIZE, world_size=, or the "
        "cluster in TF_CONFIG)",
        since=max(m.phase_since for m in odd),
    )


RULE = Rule(
    stage=Stage.STARTUP,
    reads=JobView,
    check=check,
    fires_on={
        "one says two": (
            gathering(held(0), held(1), held(2, declared=declared(2, 2))),
            "worker 2 expects a world of 2, the others of 3",
        ),
        "one trains alone": (
            gathering(held(0), held(1, declared=declared(1, 1)), held(2)),
            "worker 1 expects a world of 1, the others of 3",
        ),
    },
    silent_on={"all say three": gathering(held(0), held(1), held(2))},
    since="0.1",
    drill=("sizes-disagree", "tf-no-cluster", "world-sizes-differ"),
)
