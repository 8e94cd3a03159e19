"""The network reports that there is no route to the rendezvous address.

## Why it matters
"No route to host" and "Network is unreachable" are real answers: from this host's routing table, from a
router, or from a firewall that rejects the connection. Frameworks treat them like a peer that is late.

## What to do
See which route the packets would take (`ip route get ADDRESS`), and whether the hosts can reach that address
at all: it may be a private address of another network, belong to an interface that is down, or be in the
wrong subnet.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from allaboard.analysis.roll_call.rendezvous_attempt import example_attempt, find_overdue_attempt
from allaboard.contracts import Rule
from allaboard.facts import Answer, Claim, JobView, Stage


def check(view: JobView) -> Iterator[Claim]:
    tried = find_overdue_attempt(view, Answer.UNREACHABLE, include_serving=True)
    if tried is None:
        return
    host = tried.member.who.host
    yield Claim(
        summary=f"{host} cannot reach the rendezvous address {tried.call.address}: {tried.call.said}",
        who=(tried.member.who,),
        evidence=tried.evidence,
        fix=f"on {host}: ip route get {shlex.quote(tried.resolved_host)}   # then fix the route, "
        "the interface or the address",
        severity=tried.severity,
        certainty=tried.certainty,
        since=tried.call.since,
        awaits=True,
    )


RULE = Rule(
    stage=Stage.NETWORK,
    reads=JobView,
    check=check,
    fires_on={
        "no route": (
            example_attempt(Answer.UNREACHABLE, said="No route to host"),
            "a cannot reach the rendezvous address node0:29500: No route to host",
        ),
        "a parameter server's host": (
            example_attempt(Answer.UNREACHABLE, said="No route to host", serves=True),
            "a cannot reach the rendezvous address node0:29500: No route to host",
        ),
    },
    silent_on={
        "before the timeout": example_attempt(Answer.UNREACHABLE, 30.0),
        "silence": example_attempt(Answer.SILENT),
    },
    since="0.1",
    drill=("net-unreachable",),
)
