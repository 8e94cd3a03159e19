"""Something between two hosts of the job changes what they send each other.

## Why it matters
If the job has a secret, each message between its hosts carries a proof that only another host of the job can
make. A message came without it: a proxy or another machine on the path adds, changes, repeats or reorders
messages, on purpose or by a fault. allaboard does not obey such a message and closes the connection; the host
connects again. The training's own connections take the same path, and have no such proof.

## What to do
Find out which machines are on the path, and whether a proxy or a tunnel is among them. With certificates
(`--tls-cert`, `--tls-key`, `--tls-ca`) nobody on the path can read the messages either.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Address, Certainty, Claim, Evidence, JobView, Knock, Severity
from allaboard.facts.samples import arrived_member, led_job


def check(view: JobView) -> Iterator[Claim]:
    for knock in view.knocks:
        if knock.kind == "forged":
            yield Claim(
                summary=f"a message from {knock.peer} on the connection of {knock.host} did not carry the "
                "job's proof",
                who=tuple(m.who for m in view.members if m.who.host == knock.host),
                evidence=(Evidence(knock.said, f"connection closed, {_count_times(knock)}"),),
                fix=f"traceroute {shlex.quote(_host(knock.peer))}   # does a machine on the path "
                "not belong to your network?",
                severity=Severity.WARNING,
                certainty=Certainty.CERTAIN,
                since=knock.knocked_at,
            )


def _count_times(knock: Knock) -> str:
    return f"{knock.times} times" if knock.times > 1 else "once"


def _host(peer: str) -> str:
    return Address.from_endpoint(peer).host if peer.count(":") == 1 else peer


def _view(kind: str, peer: str) -> JobView:
    text = "something between the hosts changes what is sent"
    knock = Knock(peer=peer, kind=kind, said=text, host="h1", rank=1, knocked_at=90.0)
    return led_job(arrived_member(0), knocks=(knock,))


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "a message without the proof reaches the leader": (
            _view("forged", "10.0.0.9"),
            "a message from 10.0.0.9 on the connection of h1 did not carry the job's proof",
        ),
        "a message without the proof reaches a host that does not lead": (
            _view("forged", "h0:29500"),
            "a message from h0:29500 on the connection of h1 did not carry the job's proof",
        ),
    },
    silent_on={
        "a worker that does not know the job's secret connects": _view("no-secret", "10.0.0.9")
    },
    unstaged="no framework does this: tests/hostile/test_relay.py puts a real relay between two agents",
)
