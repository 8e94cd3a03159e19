"""The roll call rejects this host: another secret, no certificate, another version or attempt.

## Why it matters
A rejected host waits forever, and the others wait for it. To a framework, both look like a host that is late.

## What to do
Give every host of the job:

- the same `--secret-file` (or ALLABOARD_SECRET);
- certificates of the same authority (`--tls-cert`, `--tls-key`, `--tls-ca`), and the same
  `--tls-names`, if any;
- the same version of allaboard.

If a job restarts its workers (`--on-failure restart`), a host that was lost, or was started again separately,
does not belong to the current attempt: start all tasks again.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.roll_call.rendezvous_attempt import example_attempt, find_attempt
from allaboard.contracts import Rule
from allaboard.facts import Answer, Certainty, Claim, JobView

MIN_REJECTED_S = 1.0
"""Seconds: an earlier run that is about to end may reject a host once."""
FIXES = {
    "no-secret": "give all hosts of the job the same secret: --secret-file FILE, or ALLABOARD_SECRET",
    "tls": "give all hosts valid certificates of the same authority (--tls-cert, --tls-key, "
    "--tls-ca), or none to any host",
    "tls-name": "give that host a certificate with one of the names of --tls-names, or add its name to "
    "--tls-names on all hosts",
    "other-round": "start all tasks of the job again: the others went on without this one",
    "version": "install the same version of allaboard on all hosts: pip install -U allaboard",
}
"""Advice by the kind of rejection; JOIN009 reports other jobs, NET017 wrong hosts."""


def check(view: JobView) -> Iterator[Claim]:
    tried = find_attempt(view, Answer.OTHER, include_serving=True)
    if tried is None or view.now - tried.call.since < MIN_REJECTED_S:
        return
    kind = tried.call.kind
    if kind not in FIXES:
        return
    host = tried.member.who.host
    passes = kind == "other-round" and tried.waited_s < view.timeout
    yield Claim(
        summary=f"{host} is rejected at the rendezvous address {tried.call.address}: {tried.call.said}",
        who=(tried.member.who,),
        evidence=tried.evidence,
        fix=FIXES[kind],
        # The leader may be about to end the previous attempt.
        certainty=Certainty.LIKELY if passes or not tried.call.is_proven else Certainty.CERTAIN,
        since=tried.call.since,
        awaits=passes,
    )


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "this host does not know the job's secret": (
            example_attempt(Answer.OTHER, 3.0, "does not know the job's secret", kind="no-secret"),
            "a is rejected at the rendezvous address node0:29500: does not know the job's secret",
        ),
        "this host's agent belongs to an earlier attempt": (
            example_attempt(
                Answer.OTHER, 3.0, "is in round 0, this job in round 1", kind="other-round"
            ),
            "a is rejected at the rendezvous address node0:29500: is in round 0, this job in round 1",
        ),
        "this host has no certificate, and the job uses TLS": (
            example_attempt(
                Answer.OTHER,
                3.0,
                "it speaks TLS, and this host was given no certificate",
                kind="tls",
            ),
            "a is rejected at the rendezvous address node0:29500: it speaks TLS, and this host was given "
            "no certificate",
        ),
        "this host's certificate has none of the job's names": (
            example_attempt(
                Answer.OTHER, 3.0, "its certificate has none of the job's names", kind="tls-name"
            ),
            "a is rejected at the rendezvous address node0:29500: its certificate has none of the job's "
            "names",
        ),
        "this host's certificate has expired": (
            example_attempt(
                Answer.OTHER,
                3.0,
                "our certificate is not taken there: certificate expired",
                kind="tls",
            ),
            "a is rejected at the rendezvous address node0:29500: our certificate is not taken there: "
            "certificate expired",
        ),
    },
    silent_on={
        "another program answers, which NET005 reports": example_attempt(
            Answer.OTHER, 3.0, "b'220 smtp'"
        ),
        "this host belongs to another job, which JOIN009 reports": example_attempt(
            Answer.OTHER, 3.0, "belongs to job 41", kind="other-job"
        ),
        "the leader has been ending the previous attempt for half a second": example_attempt(
            Answer.OTHER, 0.5, "is in round 1, this job in round 0", kind="other-round"
        ),
        "this host was rejected for the first time half a second ago": example_attempt(
            Answer.OTHER, 0.5, "does not know the job's secret", kind="no-secret"
        ),
    },
    drill=("net-other-secret",),
)
