"""No packet comes back from the rendezvous address: a firewall drops them, or the host is down.

## Why it matters
To every framework, silence looks like a slow peer: PyTorch retries for half an hour, TensorFlow forever.
Which of the two directions is blocked cannot be seen from one side.

## What to do
Check whether the host is up (`ping HOST`). If it is, open TCP on this port between the two hosts in both
directions, and on the ports above 1024 for the data. In a cloud, look at the security groups; in Kubernetes,
at the network policies; on a cluster, often at the login node's firewall.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from allaboard.analysis.roll_call.rendezvous_attempt import example_attempt, find_overdue_attempt
from allaboard.contracts import Rule
from allaboard.facts import Answer, Claim, JobView, Stage


def check(view: JobView) -> Iterator[Claim]:
    tried = find_overdue_attempt(view, Answer.SILENT, include_serving=True)
    if tried is None:
        return
    host, numeric = tried.member.who.host, shlex.quote(tried.resolved_host)
    yield Claim(
        summary=f"{host} gets no answer from the rendezvous address {tried.call.address}: "
        "a firewall drops the packets, or the host is down",
        who=(tried.member.who,),
        evidence=tried.evidence,
        fix=f"on {host}: ping -c1 {numeric}; nc -vz -w3 {numeric} {tried.port}"
        f"   # if only the ping is answered, open TCP port {tried.port} between the hosts",
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
        "dropped": (
            example_attempt(Answer.SILENT, said="no answer in 3 s"),
            "a gets no answer from the rendezvous address node0:29500: a firewall drops the packets, or "
            "the host is down",
        ),
        "a parameter server's host": (
            example_attempt(Answer.SILENT, said="no answer in 3 s", serves=True),
            "a gets no answer from the rendezvous address node0:29500: a firewall drops the packets, or "
            "the host is down",
        ),
    },
    silent_on={
        "a parameter server that had joined before": example_attempt(
            Answer.SILENT, serves=True, shook=True
        ),
        "before the timeout": example_attempt(Answer.SILENT, 30.0),
        "refused": example_attempt(Answer.REFUSED),
    },
    since="0.1",
    drill=("net-dropped", "net-dropped-both"),
)
