"""The allaboard agent that led the job has ended without notice.

## Why it matters
The agent on the first host collects what all hosts report and decides for all. When it is killed (SIGKILL,
the out-of-memory killer, a crash of its host), the workers that it started end with it. The other workers
lose the connection to them and fail too, each with a different message; none says what came first.

That the agent's connection has ended is certain. That its process or its host died is likely: nothing answers
at its address any more. "Connection refused" means that the host is up and the process is gone; no answer at
all means that the host or the network between is down.

## What to do
Log in to the host that is named and look for what ended the agent: `dmesg -T | tail` names the out-of-memory
killer, and the batch system's log names a time limit or a lost node. Then start the job again.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from allaboard.analysis.failures.failure_causality import failed_at
from allaboard.analysis.failures.lost_leader import LostLeader, find_lost_leader
from allaboard.analysis.failures.lost_peer import peer_loss_message
from allaboard.analysis.member_names import name_members
from allaboard.contracts import Relations, Rule
from allaboard.facts import Answer, Certainty, Claim, Evidence, JobView, Phase, Severity, Who
from allaboard.facts.interruption import Interruption
from allaboard.facts.leader_loss import LeaderLoss
from allaboard.facts.samples import ended_member, sample_job, sample_member, waiting_member

SETTLE_S = 2.0
"""Seconds in which members may still fail because of the loss, before it is reported by itself."""


def check(view: JobView) -> Iterator[Claim]:
    lost = find_lost_leader(view)
    if lost is None:
        return
    if lost.victims:
        yield _claim(lost)
        return
    if lost.loss.is_silent:
        return  # HANG019 and NET012 report who waits for it; it may come back
    trains = any(m.phase is not Phase.LEAVING and not m.launcher for m in view.alive)
    if trains and view.now - lost.loss.lost_at >= SETTLE_S and not view.ending:
        yield _claim(lost)


def _claim(lost: LostLeader) -> Claim:
    loss, victims = lost.loss, lost.victims
    agent = f"the agent of {loss.host} ({loss.address}), which led the job, has gone"
    evidence = [
        Evidence(loss.how, "connection to the agent"),
        Evidence(_answers(loss), loss.address),
    ]
    if victims:
        first_victim = min(victims, key=failed_at)
        symptom = (
            peer_loss_message(first_victim)[:200]
            if first_victim.raised is not None
            else "it failed then"
        )
        evidence.append(Evidence(symptom, first_victim.who.name))
    return Claim(
        summary=f"{agent}; {name_members(victims)} failed because of it" if victims else agent,
        who=(Who(index=max(loss.rank, 0), rank=loss.rank, host=loss.host),) if victims else (),
        evidence=tuple(evidence),
        fix=f"ssh {shlex.quote(loss.host)} 'dmesg -T | tail'   # if it is up: what killed allaboard there",
        severity=Severity.ERROR if victims else Severity.WARNING,
        certainty=Certainty.LIKELY,
        since=loss.lost_at,
    )


def _answers(loss: LeaderLoss) -> str:
    times = f", {loss.tries} times" if loss.tries > 1 else ""
    return f"{loss.detail or loss.answer}{times}"


_PEER = ("RuntimeError", "Connection closed by peer [10.0.0.2]:18334")
_HOW = "it ended without signing off (closed by the other end)"


def _loss(answer: Answer | None = Answer.REFUSED) -> LeaderLoss:
    return LeaderLoss(
        host="h0",
        rank=0,
        address="10.0.0.1:41231",
        lost_at=95.0,
        how=_HOW,
        answer=answer,
        detail="Connection refused",
        tries=3,
    )


_NAMED = "the agent of h0 (10.0.0.1:41231), which led the job, has gone"
_FAILED = ended_member(1, ended_at=95.4, raised=_PEER)
RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "the leader has gone, and a worker on this host lost its peer": (
            sample_job(_FAILED, joined=True, leader_loss=_loss()),
            f"{_NAMED}; worker 1 failed because of it",
        ),
        "the leader has gone, and the workers on this host go on": (
            sample_job(waiting_member(1), joined=True, leader_loss=_loss()),
            _NAMED,
        ),
        "the leader's host does not answer, and a worker on this host lost its peer": (
            sample_job(_FAILED, joined=True, leader_loss=_loss(Answer.SILENT)),
            f"{_NAMED}; worker 1 failed because of it",
        ),
    },
    silent_on={
        "the leader's address is still being tried": sample_job(
            _FAILED, joined=True, leader_loss=_loss(answer=None)
        ),
        "the leader still answers at its own port": sample_job(
            _FAILED, joined=True, leader_loss=_loss(Answer.ABOARD)
        ),
        "the leader's host was interrupted": sample_job(
            _FAILED,
            joined=True,
            leader_loss=_loss(),
            interruptions=(Interruption(host="h0", signal=15, interrupted_at=94.9),),
        ),
        "the job was already being ended": sample_job(
            _FAILED, joined=True, leader_loss=_loss(), ending=True, ending_since=94.0
        ),
        "the worker has finished its training, and is shutting down": sample_job(
            sample_member(1, phase=Phase.LEAVING), joined=True, leader_loss=_loss()
        ),
        "all workers on this host exited with code 0": sample_job(
            ended_member(1, code=0), joined=True, leader_loss=_loss()
        ),
    },
    drill=("leader-agent-killed",),
    relations=Relations(begins_failure=True, precedes_all=True),
)
