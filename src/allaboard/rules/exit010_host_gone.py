"""A host is lost: its agent is no longer reachable, and workers on other hosts failed.

## Why it matters
A host that crashes, is preempted or loses its network reports nothing. Its peers see a closed connection, and
each names a different peer; none says which host it was.

## What to do
Check whether the host is up (`ping -c 3 HOST`), and look for the cause in its kernel log (`dmesg -T | tail`)
and the provider's events. If the host is up, its allaboard was killed; its log may say by what.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from allaboard.analysis.failures.failure_causality import order_failures
from allaboard.analysis.failures.lost_hosts import find_lost_hosts
from allaboard.analysis.failures.lost_peer import peer_loss_message
from allaboard.analysis.member_names import name_members
from allaboard.contracts import Relations, Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member, Who
from allaboard.facts.samples import ended_member, sample_job, waiting_member


def check(view: JobView) -> Iterator[Claim]:
    for lost_host in find_lost_hosts(view) if not order_failures(view).root_failures else ():
        if lost_host.victims:
            yield _claim(lost_host.host, lost_host.members, lost_host.victims)


def _claim(host: str, lost_members: tuple[Member, ...], victims: tuple[Member, ...]) -> Claim:
    end, first_victim = lost_members[0].exit, victims[0]
    assert end is not None
    symptom = (
        peer_loss_message(first_victim)[:200]
        if first_victim.raised is not None
        else ("it failed at the same time")
    )
    return Claim(
        summary=f"host {host} is lost, and {name_members(lost_members)} with it",
        who=tuple(m.who for m in lost_members),
        evidence=(
            Evidence("its agent is no longer reachable", "connection to the agent"),
            Evidence(symptom, first_victim.who.name),
        ),
        fix=f"ping -c 3 {shlex.quote(host)}   # if it is up, look there with dmesg -T | tail, and for "
        "what killed allaboard",
        certainty=Certainty.LIKELY,
        since=end.ended_at,
    )


_LOST = ("RuntimeError", "Connection closed by peer [10.0.0.2]:18334")
_B = Who(index=1, rank=1, host="b", pid=101)


def _view(
    interrupted: float | None = None,
    failed_at: float = 95.0,
    step_at: float = 90.0,
    **exit_fields: object,
) -> JobView:
    victim = ended_member(0, ended_at=failed_at, raised=_LOST, member={"step_at": step_at})
    changes = {"who": _B, "interrupted": interrupted}
    return sample_job(
        victim,
        ended_member(1, ended_at=95.0, member=changes, **exit_fields),
        joined=True,
        launched=1,
    )


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("exit",),
    fires_on={
        "a host's agent has gone with its worker, and a worker on another host lost its peer": (
            _view(lost=True, code=None),
            "host b is lost, and worker 1 with it",
        ),
        "a worker made no step after the host was lost, and failed 55 seconds later": (
            _view(failed_at=150.0, lost=True, code=None),
            "host b is lost, and worker 1 with it",
        ),
    },
    silent_on={
        "the host's agent reported that its worker was killed": _view(signal=9),
        "the host's agent had reported that it was interrupted": _view(
            interrupted=94.0, lost=True, code=None
        ),
        "a worker on another host made steps after the host was lost": _view(
            failed_at=150.0, step_at=149.0, lost=True, code=None
        ),
        "a host is lost, and no worker on another host has failed": sample_job(
            waiting_member(0),
            ended_member(1, ended_at=95.0, lost=True, code=None, member={"who": _B}),
            joined=True,
        ),
    },
    drill=("agent-killed", "agent-killed-unseen"),
    relations=Relations(begins_failure=True, precedes_all=True),
)
