"""Something that is not part of the job keeps connecting to the rendezvous address.

## Why it matters
It may be a health check, a port scanner, or a client of a service that has moved. It does not harm the roll
call, which rejects it. But PyTorch's store and TensorFlow's server will listen on the same port, and not
every framework copes with such clients.

## What to do
Find out from its address what it is, or use a port that it does not know.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Claim, Evidence, JobView, Knock, Severity
from allaboard.facts.samples import arrived_member, led_job

MIN_CONNECTIONS = 3
"""Connections before they are reported; a single one may be chance."""
WARNING_KINDS = ("no-secret", "no-tls", "tls-name")
"""Kinds of callers that may belong to the job, but were rejected."""
KINDS = ("http", "tls", "silent", "other", *WARNING_KINDS, "version", "store", "grpc")
"""All kinds of callers that are reported; JOIN009 reports other jobs."""


def check(view: JobView) -> Iterator[Claim]:
    for knock in view.knocks:
        if knock.kind in KINDS and knock.times >= MIN_CONNECTIONS:
            yield Claim(
                summary=f"{_describe_client(knock)} keeps connecting to the rendezvous address from "
                f"{knock.peer}",
                evidence=(Evidence(f"{knock.times} times", "roll call"),),
                fix=_fix(knock),
                severity=Severity.INFO if knock.kind not in WARNING_KINDS else Severity.WARNING,
                since=knock.knocked_at,
            )


def _describe_client(knock: Knock) -> str:
    is_agent = knock.host and knock.kind in (*WARNING_KINDS, "version")
    return f"{knock.claimed_member}, which {knock.said}," if is_agent else knock.said


def _fix(knock: Knock) -> str:
    if knock.kind == "no-secret":
        return f"if {knock.peer} belongs to this job, give it the same --secret-file or ALLABOARD_SECRET"
    if knock.kind == "no-tls":
        advice = "give it valid --tls-* certificates of the same authority"
        return f"if {knock.peer} belongs to this job, {advice}"
    if knock.kind == "version":
        return "install the same version of allaboard on all hosts: pip install -U allaboard"
    return f"find out what it is: ss -tnp on {knock.peer}; or use another port"


def _view(
    times: int, kind: str = "http", description: str = "a web client", host: str = ""
) -> JobView:
    knock = Knock(
        peer="10.0.0.9", kind=kind, said=description, host=host, times=times, knocked_at=90.0
    )
    return led_job(arrived_member(0), knocks=(knock,))


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "a health check has connected three times": (
            _view(3),
            "a web client keeps connecting to the rendezvous address from 10.0.0.9",
        ),
        "an agent that does not know the job's secret has connected three times": (
            _view(3, "no-secret", "does not know the job's secret", "h1"),
            "h1, which does not know the job's secret, keeps connecting to the rendezvous address from "
            "10.0.0.9",
        ),
        "an agent with TLS, which this job does not use, has connected three times": (
            _view(3, "no-tls", "has a certificate, and here TLS is not spoken", "h1"),
            "h1, which has a certificate, and here TLS is not spoken, keeps connecting to the rendezvous "
            "address from 10.0.0.9",
        ),
    },
    silent_on={"a web client has connected once": _view(1)},
    drill=("net-stranger", "net-leader-no-secret"),
)
