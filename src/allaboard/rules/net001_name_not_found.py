"""The first worker is not found: the name of its host does not resolve on a host that waits for it.

## Why it matters
PyTorch warns and retries for up to a minute; TensorFlow and JAX hang without a message. The other hosts see
only that this one never joins.

## What to do
Run `getent hosts NAME` on the host that the finding names. In Kubernetes the name exists only once the
headless service exists, and the pod belongs to it and is scheduled: until `--timeout` is over, this finding
is a warning. On a cluster, use the name by which the nodes know each other, or an address.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from allaboard.analysis.roll_call.absent_first import both_ends, describe_absent_first, or_start_it
from allaboard.analysis.roll_call.rendezvous_attempt import (
    RendezvousAttempt,
    example_attempt,
    find_attempt,
    find_overdue_attempt,
)
from allaboard.contracts import Rule
from allaboard.facts import Answer, Certainty, Claim, Declared, JobView, Severity

MIN_FAILING_S = 2.0
"""Seconds of failing look-ups before they are reported: a name server may learn of a new host late."""


def check(view: JobView) -> Iterator[Claim]:
    tried = find_attempt(view, Answer.NO_NAME) or find_overdue_attempt(
        view, Answer.NO_NAME, include_serving=True
    )
    if tried is None or view.now - tried.call.since < MIN_FAILING_S:
        return
    # The name of a pod or a new host appears when that starts; a name in brackets never resolves.
    may_come = tried.waited_s < view.timeout and not tried.host_name.startswith("[")
    absent_first = _absent_first(tried)
    yield Claim(
        summary=describe_absent_first(tried, absent_first)
        if absent_first is not None
        else f"{tried.member.who.host} cannot resolve {tried.host_name}, the host of the rendezvous address",
        who=both_ends(tried, absent_first) if absent_first is not None else (tried.member.who,),
        evidence=tried.evidence,
        fix=_fix(tried),
        severity=Severity.WARNING if may_come else tried.severity,
        certainty=Certainty.LIKELY if may_come else tried.certainty,
        since=tried.call.since,
        awaits=may_come,
    )


def _absent_first(tried: RendezvousAttempt) -> Declared | None:
    """Return what is declared of the job whose first member is not found; None if the name is no name, or
    not the first member's."""
    is_name = not tried.host_name.startswith("[")
    return tried.member.declared if is_name and tried.is_first_members_own else None


def _fix(tried: RendezvousAttempt) -> str:
    if tried.host_name.startswith("["):
        return f"export MASTER_ADDR={tried.host_name.strip('[]')}   # PyTorch expects it without brackets"
    absent_first = _absent_first(tried)
    start = f"; {or_start_it(tried, absent_first)}" if absent_first is not None else ""
    return (
        f"on {tried.member.who.host}: getent hosts {shlex.quote(tried.host_name)}   "
        f"# no line: fix the name server or /etc/hosts, or use an IP address{start}"
    )


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "the name of the first host has not resolved for 3 seconds": (
            example_attempt(Answer.NO_NAME, 3.0, "Name or service not known"),
            "rank 0 (node0:29500) has not started, as far as a can see: the name node0 is not known "
            "there (Name or service not known)",
        ),
        "seen from a parameter server's host, after the timeout": (
            example_attempt(Answer.NO_NAME, 61.0, "Name or service not known", serves=True),
            "rank 0 (node0:29500) has not started, as far as a can see: the name node0 is not known "
            "there (Name or service not known)",
        ),
    },
    silent_on={
        (
            "a parameter server has looked up the first host's name for 59 seconds, less "
            "than the timeout"
        ): example_attempt(Answer.NO_NAME, 59.0, "Name or service not known", serves=True),
        "the first look-up failed one second ago": example_attempt(
            Answer.NO_NAME, 1.0, "Name or service not known"
        ),
        "the name resolves, and the connection is refused": example_attempt(
            Answer.REFUSED, 3.0, "Connection refused"
        ),
    },
    drill=("net-no-name", "net-no-name-of-server"),
)
