"""A host's agent is connected but does not respond, and other members wait for that host.

## Why it matters
A host may be suspended, swap so heavily that nothing runs, or have all its processes frozen (a paused
container, a checkpoint of a virtual machine). Its kernel still acknowledges packets, so no connection breaks
and no framework reports anything. Members that wait for its ranks wait until the timeout, or forever.

## What to do
Look at that host: `ps -eo pid,stat,args | grep python; free -m`. Resume stopped processes (state `T`) with
`kill -CONT PID`, and a paused container with its runtime's `unpause`. If the host swaps, end what uses its
memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from allaboard.analysis.member_names import conjugate_verb, name_members
from allaboard.analysis.parameter_servers import SERVER_JOIN_OP
from allaboard.analysis.stalls.long_call import call_duration_evidence, waits_in_long_call
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member, Op, Phase, Who
from allaboard.facts.samples import NOW, ps_member, sample_job, sample_member, waiting_member

MIN_SILENT_S = 36.0
"""Seconds without a message before it is reported; an agent reports each member once a second. A host whose
kernel does not answer either is known to be lost by then (HANG019)."""


def check(view: JobView) -> Iterator[Claim]:
    if not view.leads:
        return
    silent: dict[str, list[Member]] = {}
    for m in view.alive:
        if (
            m.is_on_other_host
            and m.phase >= Phase.JOINING
            and view.now - m.heard_at >= MIN_SILENT_S
        ):
            silent.setdefault(m.who.host, []).append(m)
    for host, members in silent.items():
        waits = [m for m in view.alive if m.who.host not in silent and waits_in_long_call(view, m)]
        if waits:
            yield _claim(view, host, members, waits)


def _claim(view: JobView, host: str, members: list[Member], waits: list[Member]) -> Claim:
    last_heard = max(m.heard_at for m in members)
    op = waits[0].op
    assert op is not None
    return Claim(
        summary=f"host {host} does not respond, although its kernel does: its processes may be frozen, or "
        f"it is swapping; {name_members(waits)} {conjugate_verb('wait', waits)} in {op.name}",
        who=tuple(m.who for m in members),
        evidence=(
            Evidence(f"last message {view.now - last_heard:.0f} s ago", f"agent of {host}"),
            call_duration_evidence(view, waits[0]),
        ),
        fix=f"on {host}: ps -eo pid,stat,args | grep python; free -m   # state T: kill -CONT PID",
        certainty=Certainty.LIKELY,
        since=last_heard,
    )


def _two_hosts(silent: float, waited: float = 50.0, **changes: Any) -> JobView:
    """Return a view in which rank 0 waits here, and rank 1's host has not responded for ``silent`` s."""
    identity = Who(index=1, rank=1, host="b", pid=101)
    return sample_job(
        waiting_member(0, op=Op("all_reduce", 41, NOW - waited), heard_at=NOW),
        sample_member(1, who=identity, key=1 << 32 | 101, heard_at=NOW - silent),
        **({"joined": True, "leads": True, "launched": 1} | changes),
    )


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("op",),
    fires_on={
        "a host has been silent for 40 seconds, and rank 0 on another host waits": (
            _two_hosts(40.0),
            "host b does not respond, although its kernel does: its processes may be frozen, or it is "
            "swapping; worker 0 waits in all_reduce",
        )
    },
    silent_on={
        "a host that has been silent for 5 seconds": _two_hosts(5.0),
        "a host that has been silent for 25 seconds: its kernel may not answer either": _two_hosts(
            25.0
        ),
        "a host is silent, but a worker has waited for only one second": _two_hosts(
            40.0, waited=1.0
        ),
        "another host leads the job, and reports this": _two_hosts(40.0, leads=False),
        "only a parameter server is left, which waits for no other member": sample_job(
            ps_member("ps", 0, op=Op(SERVER_JOIN_OP, 1, 20.0)),
            *_two_hosts(40.0).members[1:],
            joined=True,
            leads=True,
        ),
    },
    drill=("host-frozen",),
    passes=True,
)
