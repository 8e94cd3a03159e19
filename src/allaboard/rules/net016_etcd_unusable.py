"""This host cannot use the etcd through which the hosts find each other.

## Why it matters
With `--coordinator etcd://…` the hosts learn from a key in etcd which of them leads. A host that cannot read
or write that key cannot join, and the others wait for it.

## What to do
The finding gives the error of etcd, or of the connection to it. `etcdctl --endpoints HOST:PORT endpoint
health` reproduces it on the host that is named. User and certificates are read from the variables that
etcdctl reads (ETCDCTL_USER, ETCDCTL_CACERT, ETCDCTL_CERT, ETCDCTL_KEY); certificates also from `--tls-ca`,
`--tls-cert` and `--tls-key`. If another job uses the same key, add another prefix to the address.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import msgspec

from allaboard.analysis.roll_call.rendezvous_attempt import example_attempt, find_attempt
from allaboard.contracts import Rule
from allaboard.facts import Answer, Call, Claim, Evidence, JobView, Phase
from allaboard.facts.samples import NOW, arrived_member, sample_declaration

MIN_FAILING_S = 2.0
"""Seconds before a refusal by etcd is reported: its state may be about to change."""
PASSING_KIND = "unreachable"
"""The kind of error that may pass by itself; it is reported only after the timeout of the roll call."""
FIXES = {
    "auth": "set ETCDCTL_USER=name:password on every host, as for etcdctl",
    "tls": "on every host: etcds:// with ETCDCTL_CACERT (ETCDCTL_CERT, ETCDCTL_KEY) or --tls-ca, or etcd://",
    "no-etcd": "give the address of etcd's client port (usually 2379) in --coordinator",
    "full": "etcdctl compact, etcdctl defrag, then etcdctl alarm disarm; or use another etcd",
    "garbled": "use a prefix that nothing else uses: --coordinator etcd://HOST:PORT/another",
    "other-job": "use a prefix that no other job uses: --coordinator etcd://HOST:PORT/another",
}
"""Advice by the kind of error; other kinds get the command that reproduces them."""


def check(view: JobView) -> Iterator[Claim]:
    tried = find_attempt(view, Answer.FAILED, include_serving=True)
    if tried is None or not tried.call.address.startswith(("etcd://", "etcds://")):
        return
    kind, error = tried.call.kind, tried.call.said
    lasted = (
        tried.waited_s >= view.timeout
        if kind == PASSING_KIND
        else view.now - tried.call.since >= MIN_FAILING_S
    )
    if not lasted:
        return
    host, endpoint = tried.member.who.host, error.partition(": ")[0]
    health_command = f"etcdctl --endpoints {shlex.quote(endpoint)} endpoint health"
    yield Claim(
        summary=f"{host} cannot use {tried.call.address}, through which the hosts find each other: {error}",
        who=(tried.member.who,),
        evidence=(
            Evidence(f"{error}, {tried.call.tries} times", host),
            Evidence(tried.call.address, "--coordinator"),
        ),
        fix=FIXES.get(kind, f"on {host}: {health_command}"),
        since=tried.call.since,
        awaits=kind == PASSING_KIND,
    )


def _server_view(shook: bool = False) -> JobView:
    """Return a view with a parameter server, which is not held at the gate."""
    view = _etcd_view("auth", "node9:2379: it does not know this user or password", 30.0)
    assert view.call is not None
    declaration = sample_declaration(
        1, job="ps", index=0, cluster={"chief:0": "a:1", "ps:0": "b:1"}, hold=False
    )
    server = arrived_member(1, declared=declaration, phase=Phase.JOINED, phase_since=NOW - 30.0)
    call = msgspec.structs.replace(view.call, shook=shook)
    return msgspec.structs.replace(view, members=(server,), call=call)


def _etcd_view(
    kind: str, error: str, waited: float = 61.0, address: str = "etcd://node9:2379/my-job"
) -> JobView:
    view = example_attempt(Answer.FAILED, waited, error, kind=kind)
    assert isinstance(view.call, Call)
    call = msgspec.structs.replace(view.call, address=address, met="")
    return msgspec.structs.replace(view, call=call)


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "etcd has been down beyond the timeout": (
            _etcd_view("unreachable", "node9:2379: connection refused"),
            "a cannot use etcd://node9:2379/my-job, through which the hosts find each other: node9:2379: "
            "connection refused",
        ),
        "etcd requires a user": (
            _etcd_view(
                "auth", "node9:2379: it requires a user: set ETCDCTL_USER=name:password", 3.0
            ),
            "a cannot use etcd://node9:2379/my-job, through which the hosts find each other: node9:2379: "
            "it requires a user: set ETCDCTL_USER=name:password",
        ),
        "etcd rejects the password of a parameter server's host": (
            _server_view(),
            "a cannot use etcd://node9:2379/my-job, through which the hosts find each other: node9:2379: "
            "it does not know this user or password",
        ),
        "etcd's database is full": (
            _etcd_view("full", "node9:2379: its database is full", 3.0),
            "a cannot use etcd://node9:2379/my-job, through which the hosts find each other: node9:2379: "
            "its database is full",
        ),
    },
    silent_on={
        "a parameter server that had joined before etcd rejected its password": _server_view(
            shook=True
        ),
        "etcd has been down for 30 seconds, and may come up before the timeout": _etcd_view(
            "unreachable", "node9:2379: connection refused", 30.0
        ),
        "etcd rejected this host for the first time half a second ago": _etcd_view(
            "auth", "node9:2379: it requires a user", 0.5
        ),
        "the hosts meet through a shared folder, which cannot be used": _etcd_view(
            "", "Permission denied", 61.0, ""
        ),
    },
    drill=("etcd-unreachable",),
)
