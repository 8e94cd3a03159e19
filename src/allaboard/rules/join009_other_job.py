"""A worker of another job connects to this job's rendezvous address, or the other way round.

## Why it matters
It is a worker of an earlier run, a neighbour in the job array, or a copied script with the same port.
Frameworks mix the two jobs silently.

## What to do
Give each job its own port, or end the earlier job. allaboard distinguishes jobs by the launcher's id (Slurm,
torchrun, PMIx, …). If the launcher sets none, set `ALLABOARD_JOB_ID` to the same text on every host of a job.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from allaboard.analysis.roll_call.rendezvous_attempt import example_attempt, find_attempt
from allaboard.analysis.roll_call.roll_call import find_roll_calls
from allaboard.contracts import Rule
from allaboard.facts import Address, Certainty, Claim, Evidence, JobView, Member, Severity
from allaboard.facts.link import Answer, Holder, Knock
from allaboard.facts.samples import arrived_member, led_job

_JOB_IDS = re.compile(r"belongs to job (?P<ours>\S+), this is (?P<theirs>\S+)")
MIN_REJECTED_S = 2.0
"""Seconds: the other job may be about to end."""


def check(view: JobView) -> Iterator[Claim]:
    for knock in view.knocks:
        if knock.kind == "other-job":
            yield Claim(
                summary=f"a worker of another job connected from {knock.peer} and was rejected",
                evidence=(
                    Evidence(
                        f"{knock.claimed_member} {knock.said}", f"roll call, {knock.times} times"
                    ),
                ),
                fix="give each job its own port, or end the earlier job on that host",
                severity=Severity.WARNING,
                since=knock.knocked_at,
            )
    holder = view.holder
    waiting = [m for roll in find_roll_calls(view) for m in roll.held_members]
    if holder is not None and holder.answer is Answer.STORE and waiting:
        yield from _held_port(view, waiting[0], holder)
    tried = find_attempt(view, Answer.OTHER)
    turned = tried is not None and tried.call.kind == "other-job"
    if tried is not None and turned and view.now - tried.call.since >= MIN_REJECTED_S:
        yield Claim(
            summary=f"another job is using {tried.call.address}; this job is rejected there",
            who=(tried.member.who,),
            evidence=(*_job_ids(tried.call.said), *tried.evidence),
            fix="give each job its own port, or end the other job",
            # It may be the previous run, which is about to end.
            certainty=Certainty.LIKELY
            if tried.waited_s < view.timeout or not tried.call.is_proven
            else Certainty.CERTAIN,
            since=tried.call.since,
            awaits=True,
        )


def _job_ids(answer_text: str) -> Iterator[Evidence]:
    """Yield both job ids: the roll call there reported them from its own point of view."""
    match = _JOB_IDS.search(answer_text)
    if match is not None:
        yield Evidence(
            f"this job is {match['ours']}, the other one is {match['theirs']}", "roll call"
        )


def _held_port(view: JobView, member: Member, holder: Holder) -> Iterator[Claim]:
    """Report another job's store at the port; whether that job still trains is unknown."""
    if not holder.job or holder.ours or view.now - holder.looked_at < MIN_REJECTED_S:
        return
    yield Claim(
        summary=f"port {Address.from_endpoint(holder.address).port} on {member.who.host} is held "
        f"by another job: pid {holder.pid} ({holder.command})",
        who=(member.who,),
        evidence=(
            Evidence(holder.job, f"environment of pid {holder.pid}"),
            Evidence("answers a ping as a TCPStore does", holder.address),
        ),
        fix="give each job its own port: set another MASTER_PORT for one of them",
        since=holder.looked_at,
    )


_HELD = Holder(
    address="a:29500",
    pid=77,
    command="python train.py",
    job="ALLABOARD_JOB_ID=B",
    answer=Answer.STORE,
    looked_at=95.0,
)
_KNOCK = Knock(
    peer="10.0.0.9",
    kind="other-job",
    host="h9",
    said="belongs to job 41, this is 42",
    knocked_at=99.0,
)
RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "a worker of another job connects to this one": (
            led_job(arrived_member(0), knocks=(_KNOCK,)),
            "a worker of another job connected from 10.0.0.9 and was rejected",
        ),
        "another job's store holds the port": (
            led_job(arrived_member(0), holder=_HELD),
            "port 29500 on a is held by another job: pid 77 (python train.py)",
        ),
        "another job rejects a worker of this one": (
            example_attempt(Answer.OTHER, 3.0, "belongs to job 41, this is 42", kind="other-job"),
            "another job is using node0:29500; this job is rejected there",
        ),
    },
    silent_on={
        "an earlier run of this job holds the port, which JOIN008 reports": led_job(
            arrived_member(0), holder=msgspec.structs.replace(_HELD, ours=True)
        ),
        "another program answers, which NET005 reports": example_attempt(
            Answer.OTHER, 3.0, "b'220 smtp'"
        ),
        "no other job connects": led_job(arrived_member(0)),
    },
    drill=("net-other-job",),
)
