"""Every member waits for the others, and nobody moves.

## Why it matters
All are inside collectives, and still none completes: they are in different ones (another order on one
rank), the shapes differ, or a link between them is lost. From stacks alone the cause is not to be told.

## What to do
Compare the places that are given. If they differ, look for a collective that only some ranks call, or
call in another order. If they are the same, suspect the network between the hosts, or
a message whose shape differs between ranks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.evidence.order import differences
from allaboard.evidence.servers import has_servers
from allaboard.evidence.spot import spot
from allaboard.evidence.stall import LOOKS, Stall, stall, transferring
from allaboard.evidence.standing import stood_since
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member, Op, Stage
from allaboard.facts.samples import (
    REDUCE,
    USER,
    called,
    ended,
    member,
    signature,
    stack,
    stalled,
    waiting,
)


def check(view: JobView) -> Iterator[Claim]:
    found = stall(view)
    if found is None or len(found.waiting) < 2 or found.elsewhere or transferring(view):
        return
    # A member that has ended is the better answer, and has its own rule; so has a call that differs;
    # a job with parameter servers has no collective, and its own rules.
    if has_servers(view) or any(not m.alive for m in view.members) or differences(view):
        return
    if any(m.stack is None or m.stack.samples < LOOKS or m.stack.moving for m in found.waiting):
        return
    yield _claim(view, found)


def _claim(view: JobView, found: Stall) -> Claim:
    places: dict[str, list[Member]] = defaultdict(list)
    for one in found.waiting:
        places[_where(one)].append(one)
    differ = len(places) > 1
    groups = sorted(places.values(), key=len)
    # One place against many has the odd one out; where none is odd, nobody is.
    odd = groups[0] if differ and len(groups[0]) < len(groups[1]) else list(found.waiting)
    return Claim(
        summary=f"all {len(found.waiting)} members wait for each other"
        + (
            f" in {len(places)} different places"
            if differ
            else f" in {next(iter(places)).removeprefix('in ')}"
        ),
        who=tuple(m.who for m in odd),
        evidence=tuple(
            Evidence(f"rank {', '.join(str(m.who.rank) for m in ms)}: {where}", "stacks")
            for where, ms in list(places.items())[:4]
        ),
        fix="look for a collective that only some ranks call or call in another order"
        if differ
        else "check the network between the hosts, and that all ranks pass one shape and dtype",
        certainty=Certainty.LIKELY if differ else Certainty.UNKNOWN,
        since=stood_since(view),
    )


def _where(one: Member) -> str:
    place = one.stack.user if one.stack is not None else None
    what = one.op.name if one.op is not None else str(spot(one.stack))
    return what + (f" at {place}" if place is not None else "")


RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    fires_on={
        "another order on rank 2": (
            stalled(waiting(0), waiting(1), waiting(2, op=Op("broadcast", 41, 90.0))),
            "all 3 members wait for each other in 2 different places",
        ),
        "one place": (
            stalled(waiting(0), waiting(1)),
            "all 2 members wait for each other in all_reduce at train.py:41 in train",
        ),
    },
    silent_on={
        "a long transfer": stalled(waiting(0, traffic=3e6), waiting(1, traffic=3e6)),
        "one is not in it": stalled(waiting(0), waiting(1), member(2)),
        "their calls are known to differ": stalled(
            *(
                called(
                    r,
                    signature(dtype="int32" if r == 2 else "float32"),
                    op=Op("all_reduce", 1, 90.0, "0", 1),
                    stack=stack(REDUCE, USER),
                )
                for r in range(3)
            )
        ),
        "one has ended": stalled(waiting(0), waiting(1), ended(2, code=0)),
    },
    since="0.1",
    passes=True,
    drill=("other-order-unseen",),
)
