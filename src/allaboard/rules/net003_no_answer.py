"""No packet comes back from the meeting place: a firewall drops them, or the host is down.

## Why it matters
To every framework, silence looks like a slow peer: PyTorch retries for half an hour, TensorFlow forever.
Which of the two directions is closed cannot be seen from here.

## What to do
See whether the host is up at all (`ping HOST`). If it is, have TCP opened on this port between the two
hosts, both ways, and on the ports above 1024 for the data. In a cloud these are security groups, on
Kubernetes network policies, on a cluster often the login node's firewall.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from allaboard.analysis.roll_call.rendezvous_attempt import calling, overdue
from allaboard.contracts import Rule
from allaboard.facts import Answer, Claim, JobView, Stage


def check(view: JobView) -> Iterator[Claim]:
    tried = overdue(view, Answer.SILENT, served=True)
    if tried is None:
        return
    host, numeric = tried.member.who.host, shlex.quote(tried.numeric)
    yield Claim(
        summary=f"{host} gets no answer at all from {tried.call.address} where all are to meet: "
        "a firewall drops the packets, or the host is down",
        who=(tried.member.who,),
        evidence=tried.evidence,
        fix=f"on {host}: ping -c1 {numeric}; nc -vz -w3 {numeric} {tried.port}"
        f"   # if only the ping is answered, open TCP {tried.port} between the two",
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
            calling(Answer.SILENT, said="no answer in 3 s"),
            "a gets no answer at all from node0:29500 where all are to meet: a firewall drops the "
            "packets, or the host is down",
        ),
        "a parameter server's host": (
            calling(Answer.SILENT, said="no answer in 3 s", serves=True),
            "a gets no answer at all from node0:29500 where all are to meet: a firewall drops the "
            "packets, or the host is down",
        ),
    },
    silent_on={
        "a server that was taken in before": calling(Answer.SILENT, serves=True, shook=True),
        "there is time left": calling(Answer.SILENT, 30.0),
        "refused": calling(Answer.REFUSED),
    },
    since="0.1",
    drill=("net-dropped", "net-dropped-both"),
)
