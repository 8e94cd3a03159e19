"""A worker of another job came to the meeting place of this one.

## Why it matters
It is a worker of an earlier run, a neighbour in the job array, or a copied script with the same port.
Frameworks silently mix the two jobs.

## What to do
Give each job a port of its own, or end the earlier job. allaboard tells jobs apart by the launcher's id
(Slurm, torchrun, PMIx, …). If the launcher gives none, set `ALLABOARD_JOB_ID` to the same text on every
host of a job.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from allaboard.analysis.roll_call.rendezvous_attempt import attempt, calling
from allaboard.analysis.roll_call.roll_call import roll_calls
from allaboard.contracts import Rule
from allaboard.facts import (
    Answer,
    Certainty,
    Claim,
    Evidence,
    Holder,
    JobView,
    Knock,
    Member,
    Severity,
    Stage,
)
from allaboard.facts.samples import gathering, held

_BOTH = re.compile(r"belongs to job (?P<ours>\S+), this is (?P<theirs>\S+)")
PATIENCE = 2.0
"""Seconds: the other job may just be closing."""


def check(view: JobView) -> Iterator[Claim]:
    for knock in view.knocks:
        if knock.kind == "other-job":
            yield Claim(
                summary=f"a worker of another job came from {knock.peer} and was turned away",
                evidence=(
                    Evidence(f"{knock.who} {knock.said}", f"roll call, {knock.times} times"),
                ),
                fix="give each job a port of its own, or end the earlier one on that host",
                severity=Severity.WARNING,
                since=knock.at,
            )
    holder = view.holder
    waiting = [m for roll in roll_calls(view) for m in roll.held]
    if holder is not None and holder.answer is Answer.STORE and waiting:
        yield from _holds(view, waiting[0], holder)
    tried = attempt(view, Answer.OTHER)
    turned = tried is not None and tried.call.kind == "other-job"
    if tried is not None and turned and view.now - tried.call.since >= PATIENCE:
        yield Claim(
            summary=f"another job meets at {tried.call.address}; this one is turned away",
            who=(tried.member.who,),
            evidence=(*_jobs(tried.call.said), *tried.evidence),
            fix="give each job a port of its own, or end the other one",
            # It may be the run before, which is about to end.
            certainty=Certainty.LIKELY if tried.waited < view.timeout else Certainty.CERTAIN,
            since=tried.call.since,
            awaits=True,
        )


def _jobs(said: str) -> Iterator[Evidence]:
    """What the roll call there has said of both, from where it stands, told from here."""
    found = _BOTH.search(said)
    if found is not None:
        yield Evidence(
            f"this one is job {found['ours']}, the one there is job {found['theirs']}", "roll call"
        )


def _holds(view: JobView, one: Member, holder: Holder) -> Iterator[Claim]:
    """Its store has the port; whether it trains is not ours to say."""
    if not holder.job or holder.ours or view.now - holder.at < PATIENCE:
        return
    yield Claim(
        summary=f"port {holder.address.rpartition(':')[2]} of {one.who.host} belongs to another job: pid "
        f"{holder.pid} ({holder.command})",
        who=(one.who,),
        evidence=(
            Evidence(holder.job, f"environment of pid {holder.pid}"),
            Evidence("it answers a ping as a TCPStore does", holder.address),
        ),
        fix="give each job a port of its own: another MASTER_PORT for one of them",
        since=holder.at,
    )


_HELD = Holder(
    address="a:29500",
    pid=77,
    command="python train.py",
    job="ALLABOARD_JOB_ID=B",
    answer=Answer.STORE,
    at=95.0,
)
_KNOCK = Knock(
    peer="10.0.0.9", kind="other-job", host="h9", said="belongs to job 41, this is 42", at=99.0
)
RULE = Rule(
    stage=Stage.STARTUP,
    reads=JobView,
    check=check,
    fires_on={
        "somebody came": (
            gathering(held(0), joined=True, leads=True, launched=1, knocks=(_KNOCK,)),
            "a worker of another job came from 10.0.0.9 and was turned away",
        ),
        "its store has the port": (
            gathering(held(0), joined=True, leads=True, launched=1, holder=_HELD),
            "port 29500 of a belongs to another job: pid 77 (python train.py)",
        ),
        "we are turned away": (
            calling(Answer.OTHER, 3.0, "belongs to job 41, this is 42", kind="other-job"),
            "another job meets at node0:29500; this one is turned away",
        ),
    },
    silent_on={
        "an earlier run of ours has the port": gathering(
            held(0),
            joined=True,
            leads=True,
            launched=1,
            holder=msgspec.structs.replace(_HELD, ours=True),
        ),
        "another program": calling(Answer.OTHER, 3.0, "b'220 smtp'"),
        "alone": gathering(held(0), joined=True, leads=True, launched=1),
    },
    since="0.1",
    drill=("net-other-job",),
)
