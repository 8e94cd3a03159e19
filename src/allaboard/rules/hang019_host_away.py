"""A host is not heard of any more, and others wait for what ran there.

## Why it matters
A host that loses its power or its cable says nothing. The connections of the frameworks stay open: who waits
for an answer from there waits until the kernel gives the connection up, a quarter of an hour as a rule.
TensorFlow 2's chief stands in `ClusterCoordinator.join` meanwhile, although it could give the work to
another worker; a collective stands on every rank.

## What to do
See whether the host is up and in the network. If it comes back within that time, the job may go on; if it is
gone for good, end the job and start it again without it, from its newest checkpoint. A parameter
server that has gone with its host is told by PS001.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.evidence.naming import agrees, names
from allaboard.evidence.servers import SERVER_JOBS, serves
from allaboard.facts import Certainty, Claim, Evidence, Exit, JobView, Member, Op, Phase, Stage, Who
from allaboard.facts.samples import NOW, job, member, waiting

WAITS = 10.0
"""Seconds that another member must have waited in one call."""


def check(view: JobView) -> Iterator[Claim]:
    if not view.leads or view.ending:
        return
    lost: dict[str, list[Member]] = {}
    for one in view.members:
        if _lost(one):
            lost.setdefault(one.who.host, []).append(one)
    waits = [m for m in view.alive if _waits(view, m)] if lost else []
    for host, members in lost.items():
        last = max(m.exit.at for m in members if m.exit is not None)
        went_on = any(m.step and m.step_at > last + WAITS for m in view.members)
        if waits and not went_on and not any(m.who.host == host for m in view.alive):
            yield _claim(view, host, members, waits, last)


def _lost(one: Member) -> bool:
    return (
        one.exit is not None
        and one.exit.lost
        and one.interrupted is None
        and one.phase >= Phase.JOINING
        and one.who.job not in SERVER_JOBS
        and not one.launcher
    )


def _waits(view: JobView, one: Member) -> bool:
    """Who only serves waits for nobody."""
    return one.op is not None and not serves(one) and view.now - one.op.since >= WAITS


def _claim(
    view: JobView, host: str, members: list[Member], waits: list[Member], last: float
) -> Claim:
    op = waits[0].op
    assert op is not None
    return Claim(
        summary=f"nothing is heard of {host} any more, where {names(members)} ran; "
        f"{names(waits)} {agrees('wait', waits)} in {op.name}",
        who=tuple(m.who for m in members),
        evidence=(
            Evidence(f"nothing has come from it for {view.now - last:.0f} s", f"agent of {host}"),
            Evidence(f"in {op.name} for {view.now - op.since:.0f} s", waits[0].who.name),
        ),
        fix=f"ping -c 3 {shlex.quote(host)}   # gone for good: end the job, start it again without that host",
        certainty=Certainty.LIKELY,
        since=last,
    )


def _two(waited: float = 40.0, lost: bool = True, **there: object) -> JobView:
    """Rank 0 waits here; of rank 1's host nothing was heard for 35 s."""
    fields = {"who": Who(index=1, rank=1, host="b", pid=101), "key": 1 << 32 | 101, "step_at": 64.0}
    return job(
        waiting(0, op=Op("all_reduce", 41, NOW - waited), step_at=64.0),
        member(1, exit=Exit(at=NOW - 35, lost=lost, code=None), **(fields | there)),
        joined=True,
        leads=True,
        launched=1,
    )


_PS = Who(job="ps", index=0, rank=1, host="b", pid=101)
RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    needs=("op",),
    fires_on={
        "rank 0 waits": (
            _two(),
            "nothing is heard of b any more, where worker 1 ran; worker 0 waits in all_reduce",
        ),
    },
    silent_on={
        "a step that has just begun": _two(waited=5.0),
        "the others went on": _two(step_at=90.0),
        "its agent told of its end": _two(lost=False),
        "it was interrupted, and said so": _two(interrupted=64.0),
        "a parameter server, which PS001 tells": _two(who=_PS),
    },
    since="0.1",
    drill=("host-away-tf2-ps",),
    passes=True,
)
