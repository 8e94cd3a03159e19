"""A member ended with exit code 0 while the others still train and wait for it.

## Why it matters
Its shard had a batch less, or an `if` let it out of the loop. It ended well by its own lights; the
others wait in the next collective, or fall with a closed connection. torchrun then blames rank 0.

## What to do
Compare the number of steps. Give every rank the same number of batches (`DistributedSampler`,
`drop_last=True`, `Dataset.repeat`), or use the framework's means for uneven inputs (torch's `Join`).
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.evidence.failures import ended_at, failed, failed_at
from allaboard.evidence.lost_peer import lost_peer
from allaboard.evidence.servers import has_servers
from allaboard.evidence.stall import stall
from allaboard.facts import Claim, Evidence, JobView, Member, Phase, Stage
from allaboard.facts.samples import ended, job, member, stalled, waiting


def check(view: JobView) -> Iterator[Claim]:
    gone = [m for m in view.members if _left(m)]
    # With parameter servers nobody waits for a worker that is done but in a synchronous optimizer.
    if not gone or has_servers(view):
        return
    first = min(gone, key=ended_at)
    victims = [m for m in view.members if m not in gone and _suffers(view, m, ended_at(first))]
    if not victims:
        return
    leavers = [
        m
        for m in gone
        if ended_at(m) <= min((failed_at(v) for v in victims if failed(v)), default=view.now)
    ]
    began = [
        m
        for m in view.members
        if failed(m) and not lost_peer(m) and failed_at(m) <= ended_at(first)
    ]
    if not began:
        yield _claim(leavers or [first], victims)


def _left(one: Member) -> bool:
    end = one.exit
    return end is not None and end.code == 0 and one.round > 0 and not end.ours and not one.launcher


def _suffers(view: JobView, one: Member, since: float) -> bool:
    """It waits in a collective that stands still, or fell with a lost peer after the other left."""
    if failed(one):
        return lost_peer(one) and failed_at(one) >= since - 1.0
    found = stall(view)
    return found is not None and one in found.waiting and one.phase < Phase.LEAVING


def _claim(gone: list[Member], victims: list[Member]) -> Claim:
    names = ", ".join(f"{m.who.job} {m.who.index}" for m in gone)
    steps = ", ".join(f"rank {m.who.rank}: {m.step}" for m in (*gone[:3], *victims[:3]))
    ranks = ", ".join(str(m.who.rank) for m in victims)
    return Claim(
        summary=f"{names} ended with exit code 0 while rank {ranks} still trained",
        who=tuple(m.who for m in gone),
        evidence=(
            Evidence(f"steps done: {steps}", "black box"),
            Evidence(f"rank {ranks} waits in a collective or lost its peer", "stacks, exceptions"),
        ),
        fix="give every rank the same number of batches (DistributedSampler, drop_last=True)",
        since=ended_at(gone[0]),
    )


_LOST = ("RuntimeError", "Connection closed by peer [127.0.0.1]:18334")
RULE = Rule(
    stage=Stage.EXIT,
    reads=JobView,
    check=check,
    fires_on={
        "the others wait": (
            stalled(waiting(0), ended(1, at=90.5, code=0), waiting(2)),
            "worker 1 ended with exit code 0 while rank 0, 2 still trained",
        ),
        "the others fell": (
            job(ended(0, at=95.3, raised=_LOST), ended(1, code=0), ended(2, at=95.5, raised=_LOST)),
            "worker 1 ended with exit code 0 while rank 0, 2 still trained",
        ),
    },
    silent_on={
        "the others are about to end too": job(member(0), ended(1, code=0), member(2)),
        "all ended well": job(ended(0, code=0), ended(1, code=0), ended(2, code=0)),
        "somebody failed first": job(
            ended(0, at=96, raised=_LOST), ended(1, at=95.5, code=0), ended(2, at=95, signal=9)
        ),
    },
    since="0.1",
    drill=("leaves-early", "tf-leaves-early"),
)
