"""A host is no longer reachable, and other members wait for what ran there.

## Why it matters
A host that loses power or its network cable closes no connection. Members that wait for an answer wait until
the kernel gives up the connection, usually after a quarter of an hour. Meanwhile TensorFlow 2's chief blocks
in `ClusterCoordinator.join`, although it could give the work to another worker, and a collective blocks on
every rank.

## What to do
Check whether the host is up and on the network: `ping -c 3 HOST`. If it comes back within that time, the job
may continue. If not, end the job and restart it without that host, from its newest checkpoint. If a parameter
server was lost with its host, PS001 reports that.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from msgspec.structs import replace

from allaboard.analysis.member_names import conjugate_verb, name_members
from allaboard.analysis.parameter_servers import SERVER_JOBS, SERVER_JOIN_OP, are_servers_in_use
from allaboard.analysis.stalls.long_call import (
    LONG_CALL_S,
    call_duration_evidence,
    is_in_long_call,
    waits_in_long_call,
)
from allaboard.contracts import Rule
from allaboard.facts import Address, Answer, Call, Certainty, Claim, Evidence, JobView, Pair, Who
from allaboard.facts.member import Exit, Member, Op, Phase
from allaboard.facts.samples import (
    NOW,
    ps_member,
    sample_declaration,
    sample_job,
    sample_member,
    waiting_member,
)


def check(view: JobView) -> Iterator[Claim]:
    if view.ending:
        return
    if view.leads:
        yield from _lost_hosts(view)
    loss = view.leader_loss
    if not view.leads or (loss is not None and loss.is_silent):
        yield from _lost_leader(view)


def _lost_leader(view: JobView) -> Iterator[Claim]:
    """Report the leader's host, which no other host can report; this host's servers may still be in use by
    members that live."""
    call = view.call
    local_members = [m for m in view.alive if m.phase >= Phase.JOINED and not m.is_on_other_host]
    if (
        call is None
        or not call.shook
        or call.answer is not Answer.SILENT
        or are_servers_in_use(view)
    ):
        return
    waits = [m for m in local_members if is_in_long_call(view, m)]
    if not waits or any(m.step and m.step_at > call.since for m in local_members):
        return
    host, op = Address.from_endpoint(call.address).host, waits[0].op
    leader_task = next(
        (w for m in local_members if (w := _listed_task(m, call.address)) is not None), None
    )
    identity = leader_task if leader_task is not None else Who(index=-1, rank=0)
    assert op is not None
    yield Claim(
        summary=f"host {host}, {'where ' + identity.name + ' ran' if leader_task else 'which led the job'}, "
        f"is no longer reachable; {name_members(waits)} {conjugate_verb('wait', waits)} in {op.name}",
        who=(replace(identity, host=host),),
        evidence=(
            Evidence(call.said, f"agent at {call.address}"),
            call_duration_evidence(view, waits[0]),
        ),
        fix=_fix(host),
        certainty=Certainty.LIKELY,
        since=call.since,
    )


def _listed_task(member: Member, address: str) -> Who | None:
    """Return the task at this address in the member's cluster, or None."""
    cluster = member.declared.cluster if member.declared is not None else {}
    task = next((t for t, a in cluster.items() if a == address), None)
    if task is None:
        return None
    name, _, index = task.partition(":")
    return Who(job=name, index=int(index) if index.isdecimal() else -1)


def _lost_hosts(view: JobView) -> Iterator[Claim]:
    lost: dict[str, list[Member]] = {}
    for candidate in view.members:
        if _is_lost(candidate):
            lost.setdefault(candidate.who.host, []).append(candidate)
    waits = [m for m in view.alive if waits_in_long_call(view, m)] if lost else []
    for host, members in lost.items():
        lost_at = max(m.exit.ended_at for m in members if m.exit is not None)
        went_on = any(m.step and m.step_at > lost_at + LONG_CALL_S for m in view.members)
        if waits and not went_on and not any(m.who.host == host for m in view.alive):
            yield _claim(view, host, members, waits, lost_at)


def _is_lost(member: Member) -> bool:
    return (
        member.exit is not None
        and member.exit.lost
        and member.interrupted is None
        and member.phase >= Phase.JOINING
        and member.who.job not in SERVER_JOBS
        and not member.launcher
    )


def _claim(
    view: JobView, host: str, members: list[Member], waits: list[Member], lost_at: float
) -> Claim:
    op = waits[0].op
    assert op is not None
    return Claim(
        summary=f"host {host}, where {name_members(members)} ran, is no longer reachable; "
        f"{name_members(waits)} {conjugate_verb('wait', waits)} in {op.name}",
        who=tuple(m.who for m in members),
        evidence=(
            Evidence(f"no message for {view.now - lost_at:.0f} s", f"agent of {host}"),
            call_duration_evidence(view, waits[0]),
        ),
        fix=_fix(host),
        certainty=Certainty.LIKELY,
        since=lost_at,
    )


def _fix(host: str) -> str:
    return f"ping -c 3 {shlex.quote(host)}   # if it does not come back, restart the job without that host"


def _server_view(answer: Answer, **pair: float) -> JobView:
    """Return a view of a server's host that has lost the chief's host."""
    call = Call(address="a:1", answer=answer, since=65.0, said="no message", shook=True)
    declaration = sample_declaration(
        1, 2, job="ps", index=0, cluster={"chief:0": "a:1", "ps:0": "b:1"}
    )
    pairs = (Pair(task="chief:0", connections=1, **pair),)  # type: ignore[arg-type]
    op = Op(SERVER_JOIN_OP, 1, 20.0)
    server = ps_member("ps", 0, declared=declaration, op=op, pairs=pairs, step=0)
    return sample_job(server, joined=True, launched=1, call=call)


def _two_hosts(waited: float = 40.0, lost: bool = True, **member_fields: object) -> JobView:
    """Return a view in which rank 0 waits here, and rank 1's host has been unreachable for 35 s."""
    fields = {"who": Who(index=1, rank=1, host="b", pid=101), "key": 1 << 32 | 101, "step_at": 64.0}
    return sample_job(
        waiting_member(0, op=Op("all_reduce", 41, NOW - waited), step_at=64.0),
        sample_member(
            1, exit=Exit(ended_at=NOW - 35, lost=lost, code=None), **(fields | member_fields)
        ),
        joined=True,
        leads=True,
        launched=1,
    )


_PS = Who(job="ps", index=0, rank=1, host="b", pid=101)
RULE = Rule(
    reads=JobView,
    check=check,
    needs=("op",),
    fires_on={
        "rank 0 has waited for 40 seconds for a rank on a host that is lost": (
            _two_hosts(),
            "host b, where worker 1 ran, is no longer reachable; worker 0 waits in all_reduce",
        ),
        "a parameter server's host has lost the connection to the chief's host": (
            _server_view(Answer.SILENT),
            "host a, where chief 0 ran, is no longer reachable; ps 0 waits in Server.join",
        ),
    },
    silent_on={
        "the chief's host still answers the parameter server's host": _server_view(Answer.ABOARD),
        (
            "the chief's host does not answer, but data still arrives at the parameter server"
        ): _server_view(Answer.SILENT, received=5e4),
        "rank 0 has waited for only 5 seconds": _two_hosts(waited=5.0),
        "a step was made long after the host fell silent": _two_hosts(step_at=90.0),
        "the host's agent has reported that its rank exited": _two_hosts(lost=False),
        "the lost host had reported that it was interrupted": _two_hosts(interrupted=64.0),
        "the lost host ran a parameter server, which PS001 reports": _two_hosts(who=_PS),
    },
    drill=("host-away-tf2-ps",),
    passes=True,
)
