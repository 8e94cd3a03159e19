"""Rendezvous addresses that no packet reaches: each rule is one way in which the network says so."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping

from allaboard.analysis.roll_call.rendezvous_attempt import (
    RendezvousAttempt,
    example_attempt,
    find_overdue_attempt,
)
from allaboard.contracts import Rule
from allaboard.facts import Answer, Claim, JobView, Stage


def _rule(
    page: str,
    answer: Answer,
    problem: Callable[[RendezvousAttempt], str],
    fix: Callable[[RendezvousAttempt], str],
    case: str,
    said: str,
    example_summary: str,
    silent_on: Mapping[str, JobView],
    drill: tuple[str, ...],
) -> Rule[JobView]:
    """Return the rule that reports a host whose attempts have got this answer until the timeout.

    ``problem`` follows the host's name in the summary. In the examples the answer reads ``said``; they are
    a worker at the gate and a parameter server.
    """

    def check(view: JobView) -> Iterator[Claim]:
        tried = find_overdue_attempt(view, answer, include_serving=True)
        if tried is None:
            return
        host = tried.member.who.host
        yield Claim(
            summary=f"{host} {problem(tried)}",
            who=(tried.member.who,),
            evidence=tried.evidence,
            fix=f"on {host}: {fix(tried)}",
            severity=tried.severity,
            certainty=tried.certainty,
            since=tried.call.since,
            awaits=True,
        )

    return Rule(
        page=page,
        stage=Stage.NETWORK,
        reads=JobView,
        check=check,
        fires_on={
            case: (example_attempt(answer, said=said), example_summary),
            "a parameter server's host": (
                example_attempt(answer, said=said, serves=True),
                example_summary,
            ),
        },
        silent_on=silent_on,
        since="0.1",
        drill=drill,
    )


def _ping_then_connect(tried: RendezvousAttempt) -> str:
    numeric = shlex.quote(tried.resolved_host)
    return (
        f"ping -c1 {numeric}; nc -vz -w3 {numeric} {tried.port}"
        f"   # if only the ping is answered, open TCP port {tried.port} between the hosts"
    )


RULES = {
    "net003_no_answer": _rule(
        page="""No packet comes back from the rendezvous address: a firewall drops them, or the host is down.

## Why it matters
To every framework, silence looks like a slow peer: PyTorch retries for half an hour, TensorFlow forever.
Which of the two directions is blocked cannot be seen from one side.

## What to do
Check whether the host is up (`ping HOST`). If it is, open TCP on this port between the two hosts in both
directions, and on the ports above 1024 for the data. In a cloud, look at the security groups; in Kubernetes,
at the network policies; on a cluster, often at the login node's firewall.
""",
        answer=Answer.SILENT,
        problem=lambda tried: (
            f"gets no answer from the rendezvous address {tried.call.address}: "
            "a firewall drops the packets, or the host is down"
        ),
        fix=_ping_then_connect,
        case="dropped",
        said="no answer in 3 s",
        example_summary="a gets no answer from the rendezvous address node0:29500: a firewall drops the "
        "packets, or the host is down",
        silent_on={
            "a parameter server that had joined before": example_attempt(
                Answer.SILENT, serves=True, shook=True
            ),
            "before the timeout": example_attempt(Answer.SILENT, 30.0),
            "refused": example_attempt(Answer.REFUSED),
        },
        drill=("net-dropped", "net-dropped-both"),
    ),
    "net004_unreachable": _rule(
        page="""The network reports that there is no route to the rendezvous address.

## Why it matters
"No route to host" and "Network is unreachable" are real answers: from this host's routing table, from a
router, or from a firewall that rejects the connection. Frameworks treat them like a peer that is late.

## What to do
See which route the packets would take (`ip route get ADDRESS`), and whether the hosts can reach that address
at all: it may be a private address of another network, belong to an interface that is down, or be in the
wrong subnet.
""",
        answer=Answer.UNREACHABLE,
        problem=lambda tried: (
            f"cannot reach the rendezvous address {tried.call.address}: {tried.call.said}"
        ),
        fix=lambda tried: (
            f"ip route get {shlex.quote(tried.resolved_host)}   # then fix the route, "
            "the interface or the address"
        ),
        case="no route",
        said="No route to host",
        example_summary="a cannot reach the rendezvous address node0:29500: No route to host",
        silent_on={
            "before the timeout": example_attempt(Answer.UNREACHABLE, 30.0),
            "silence": example_attempt(Answer.SILENT),
        },
        drill=("net-unreachable",),
    ),
}
