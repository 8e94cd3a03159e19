"""The roll call turns this host away: another secret, no certificate, another version or round.

## Why it matters
A host that is turned away waits forever, and the others wait for it. To a framework, both look like a host
that is late.

## What to do
Give every host of the job:

- the same `--secret-file` (or ALLABOARD_SECRET);
- certificates of the same authority (`--tls-cert`, `--tls-key`, `--tls-ca`);
- the same version of allaboard.

If a job is started again in rounds (`--on-failure restart`), a host that was lost, or that was started
again by itself, belongs to no round of it: start all tasks anew.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.roll_call.rendezvous_attempt import attempt, calling
from allaboard.contracts import Rule
from allaboard.facts import Answer, Certainty, Claim, JobView, Stage

PATIENCE = 1.0
"""Seconds: a host may be turned away once by an earlier run that is just ending."""
FIXES = {
    "no-secret": "give all hosts of the job the same secret: --secret-file FILE, or ALLABOARD_SECRET",
    "tls": "give all hosts certificates of the same authority, not expired (--tls-cert, --tls-key, "
    "--tls-ca), or give none to any",
    "other-round": "start every task of the job anew: the others went on without this one",
    "version": "install the same version of allaboard on all hosts: pip install -U allaboard",
}


def check(view: JobView) -> Iterator[Claim]:
    tried = attempt(view, Answer.OTHER, served=True)
    if tried is None or view.now - tried.call.since < PATIENCE:
        return
    kind = tried.call.kind
    if kind not in FIXES:
        return
    host = tried.member.who.host
    passes = kind == "other-round" and tried.waited < view.timeout
    yield Claim(
        summary=f"{host} is turned away at {tried.call.address}, where all are to meet: {tried.call.said}",
        who=(tried.member.who,),
        evidence=tried.evidence,
        fix=FIXES[kind],
        # Who decides may be about to end the round before.
        certainty=Certainty.LIKELY if passes else Certainty.CERTAIN,
        since=tried.call.since,
        awaits=passes,
    )


RULE = Rule(
    stage=Stage.NETWORK,
    reads=JobView,
    check=check,
    fires_on={
        "another secret": (
            calling(Answer.OTHER, 3.0, "does not know the job's secret", kind="no-secret"),
            "a is turned away at node0:29500, where all are to meet: does not know the job's secret",
        ),
        "an agent of the round before": (
            calling(Answer.OTHER, 3.0, "is in round 0, this job in round 1", kind="other-round"),
            "a is turned away at node0:29500, where all are to meet: is in round 0, this job in round 1",
        ),
        "no certificate": (
            calling(
                Answer.OTHER,
                3.0,
                "it speaks TLS, and this host was given no certificate",
                kind="tls",
            ),
            "a is turned away at node0:29500, where all are to meet: it speaks TLS, and this host was "
            "given no certificate",
        ),
        "a certificate that has expired": (
            calling(
                Answer.OTHER,
                3.0,
                "our certificate is not taken there: certificate expired",
                kind="tls",
            ),
            "a is turned away at node0:29500, where all are to meet: our certificate is not taken there: "
            "certificate expired",
        ),
    },
    silent_on={
        "another program": calling(Answer.OTHER, 3.0, "b'220 smtp'"),
        "another job is another rule's": calling(
            Answer.OTHER, 3.0, "belongs to job 41", kind="other-job"
        ),
        "the host that leads still ends the round before": calling(
            Answer.OTHER, 0.5, "is in round 1, this job in round 0", kind="other-round"
        ),
        "just once": calling(Answer.OTHER, 0.5, "does not know the job's secret", kind="no-secret"),
    },
    since="0.1",
    drill=("net-other-secret",),
)
