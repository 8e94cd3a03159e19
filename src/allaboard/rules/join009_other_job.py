"""A worker of another job came to the meeting place of this one.

## Why it matters
An earlier run's worker, a job array's neighbour or a copied script with the same port: without a word
about it, frameworks mix the two.

## What to do
Give each job a port of its own, or end the earlier one. Jobs are told apart by the launcher's id
(Slurm, torchrun, PMIx, …); where the launcher gives none, set `ALLABOARD_JOB_ID` to the same text on
every host of a job.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.evidence.calling import attempt, calling
from allaboard.facts import Answer, Claim, Evidence, JobView, Knock, Severity, Stage
from allaboard.facts.samples import gathering, held


def check(view: JobView) -> Iterator[Claim]:
    for knock in view.knocks:
        if knock.kind == "other-job":
            yield Claim(
                summary=f"a worker of another job came from {knock.peer} and was turned away",
                evidence=(Evidence(knock.said, f"roll call, {knock.times} times"),),
                fix="give each job a port of its own, or end the earlier one on that host",
                severity=Severity.WARNING,
                since=knock.at,
            )
    tried = attempt(view, Answer.OTHER)
    if tried is not None and tried.call.said.startswith("other-job"):
        yield Claim(
            summary=f"another job meets at {tried.call.address}; this one is turned away",
            who=(tried.member.who,),
            evidence=tried.evidence,
            fix="give each job a port of its own, or end the other one",
            since=tried.call.since,
        )


_KNOCK = Knock(peer="10.0.0.9", kind="other-job", said="h9: belongs to job 41, this is 42", at=99.0)
RULE = Rule(
    stage=Stage.STARTUP,
    reads=JobView,
    check=check,
    fires_on={
        "somebody came": (
            gathering(held(0), joined=True, leads=True, launched=1, knocks=(_KNOCK,)),
            "a worker of another job came from 10.0.0.9 and was turned away",
        ),
        "we are turned away": (
            calling(Answer.OTHER, 3.0, "other-job: belongs to job 41, this is 42"),
            "another job meets at node0:29500; this one is turned away",
        ),
    },
    silent_on={
        "another program": calling(Answer.OTHER, 3.0, "b'220 smtp'"),
        "alone": gathering(held(0), joined=True, leads=True, launched=1),
    },
    since="0.1",
    drill=("net-other-job",),
)
