"""Rendezvous addresses that no packet reaches: each rule is one way in which the network says so."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping

from allaboard.analysis.roll_call.absent_first import both_ends, describe_absent_first, or_start_it
from allaboard.analysis.roll_call.rendezvous_attempt import (
    RendezvousAttempt,
    example_attempt,
    find_overdue_attempt,
)
from allaboard.contracts import Rule
from allaboard.facts import Answer, Call, Claim, JobView


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
    names_first: bool = True,
) -> Rule[JobView]:
    """Return the rule that reports a host whose attempts have got this answer until the timeout.

    ``problem`` follows the host's name in the summary; where the address is the first member's own, that one
    is named instead if ``names_first``. In the examples the answer reads ``said``; they are a worker at the
    gate and a parameter server.
    """

    def check(view: JobView) -> Iterator[Claim]:
        tried = find_overdue_attempt(view, answer, include_serving=True)
        if tried is None or tried.call.kind:
            return
        host, declared = tried.member.who.host, tried.member.declared
        first_member = declared if names_first and tried.is_first_members_own else None
        yield Claim(
            summary=f"{host} {problem(tried)}"
            if first_member is None
            else describe_absent_first(tried, first_member),
            who=(tried.member.who,) if first_member is None else both_ends(tried, first_member),
            evidence=tried.evidence,
            fix=f"on {host}: {fix(tried)}"
            + (f"; {or_start_it(tried, first_member)}" if first_member is not None else ""),
            severity=tried.severity,
            certainty=tried.certainty,
            since=tried.call.since,
            awaits=True,
        )

    return Rule(
        page=page,
        reads=JobView,
        check=check,
        fires_on={
            case: (example_attempt(answer, said=said), example_summary),
            "seen from a parameter server's host": (
                example_attempt(answer, said=said, serves=True),
                example_summary,
            ),
        },
        silent_on=silent_on,
        drill=drill,
    )


def _reason(call: Call) -> str:
    no_address = call.said.endswith(": not host:port")
    return "it is no host with a port from 1 to 65535" if no_address else call.said


def _ping_then_connect(tried: RendezvousAttempt) -> str:
    numeric = shlex.quote(tried.resolved_host)
    return (
        f"ping -c1 {numeric}; nc -vz -w3 {numeric} {tried.port}"
        f"   # only the ping is answered: open TCP port {tried.port} between the hosts"
    )


RULES = {
    "net003_no_answer": _rule(
        page="""The first worker does not answer: its host is down, or a firewall drops the packets.

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
        case="packets to the first host are dropped",
        said="no answer in 3 s",
        example_summary="rank 0 (node0:29500) has not started, as far as a can see: no answer (its host is "
        "down, or a firewall drops the packets)",
        silent_on={
            "a parameter server that had joined before": example_attempt(
                Answer.SILENT, serves=True, shook=True
            ),
            "there has been no answer for 30 seconds, less than the timeout": example_attempt(
                Answer.SILENT, 30.0
            ),
            "the connection is refused, which NET002 reports": example_attempt(Answer.REFUSED),
        },
        drill=("net-dropped", "net-dropped-both", "first-task-blocked"),
    ),
    "net019_unusable_address": _rule(
        page="""The rendezvous address cannot be connected to at all: the system refuses even the attempt.

## Why it matters
With port 0, or a port that is not a number, rank 0 may open any port, and no other host can know which.
Other addresses name an interface that this host does not have. Frameworks report it late, or wait.

## What to do
Set one address with a port from 1 to 65535 on all hosts: MASTER_ADDR and MASTER_PORT, TF_CONFIG, JAX's
coordinator address, or the arguments of the init.
""",
        answer=Answer.FAILED,
        problem=lambda tried: (
            f"cannot use {tried.call.address or 'the rendezvous'} as the rendezvous address: "
            f"{_reason(tried.call)}"
        ),
        fix=lambda tried: (
            f"correct the address in {tried.origin}   # HOST:29500, the same everywhere"
        ),
        case="the rendezvous address has port 0",
        said="node0:0: not host:port",
        example_summary="a cannot use node0:29500 as the rendezvous address: it is no host with a port "
        "from 1 to 65535",
        silent_on={
            "connecting has failed for 30 seconds, less than the timeout": example_attempt(
                Answer.FAILED, 30.0
            ),
            "the host does not answer at all, which NET003 reports": example_attempt(Answer.SILENT),
            "etcd rejects this host's password": example_attempt(Answer.FAILED, kind="auth"),
        },
        drill=("port-zero",),
        names_first=False,
    ),
    "net004_unreachable": _rule(
        page="""The first worker is out of reach: the network reports that there is no route to its address.

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
        case="there is no route to the first host",
        said="No route to host",
        example_summary="rank 0 (node0:29500) has not started, as far as a can see: No route to host",
        silent_on={
            "there has been no route for 30 seconds, less than the timeout": example_attempt(
                Answer.UNREACHABLE, 30.0
            ),
            "the host does not answer at all, which NET003 reports": example_attempt(Answer.SILENT),
        },
        drill=("net-unreachable",),
    ),
}
