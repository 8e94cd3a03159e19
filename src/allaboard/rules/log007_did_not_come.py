"""By NCCL's watchdogs, some ranks did not come to a collective in which the others waited for them.

## Why it matters
The watchdog reports on the victims, and ends them with SIGABRT; launchers then name one of those as the
root cause. The rank at fault wrote only how far it had come: fewer collectives of the group than the
others.

## What to do
Look at what the named ranks did meanwhile: their own log, a `py-spy dump --pid PID` while the job hangs, a
branch on the rank, data that ran out there, a slow checkpoint or download on one rank alone. If the rank
had called the collective and its GPU did not get through it, look at that GPU, its links and its host.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.collectives.nccl_watchdogs import (
    LateRanks,
    compare_watchdogs,
    describe_overdue,
)
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Stage, Watchdogs, Who
from allaboard.facts.rank_sets import format_ranks
from allaboard.facts.samples import overdue, watchdogs


def check(found: Watchdogs) -> Iterator[Claim]:
    for one in compare_watchdogs(found):
        if isinstance(one, LateRanks):
            yield _claim(one)


def _claim(one: LateRanks) -> Claim:
    first, last = one.waiting_report, one.late_report
    many = "ranks" if len(one.ranks) > 1 else "rank"
    others = f"rank {format_ranks(one.waiting)} waited"
    if one.was_called:
        summary = (
            f"{many} {format_ranks(one.ranks)} did not get through {last.op}, collective {last.number} of group "
            f"{last.group}; rank {format_ranks(one.waiting)} did"
        )
        fix = (
            f"look at the GPU, the links and the host of rank {format_ranks(one.ranks)}: nvidia-smi; "
            "dmesg -T | grep -i xid"
        )
    else:
        summary = (
            f"{many} {format_ranks(one.ranks)} never called {first.op}, collective {first.number} of group "
            f"{first.group}, in which {others}"
        )
        fix = f"look at rank {format_ranks(one.ranks)}: its log, or py-spy dump --pid PID while it hangs"
    evidence = [Evidence(last.line, str(last.place)), Evidence(first.line, str(first.place))]
    if first.where is not None:
        evidence.append(
            Evidence(f"{describe_overdue(first)} is called at {first.where}", "Flight Recorder")
        )
    return Claim(
        summary=summary,
        who=tuple(Who(index=r, rank=r) for r in one.ranks[:64]),
        evidence=tuple(evidence),
        fix=fix,
        certainty=Certainty.LIKELY,
    )


RULE = Rule(
    stage=Stage.RUNTIME,
    reads=Watchdogs,
    check=check,
    fires_on={
        "one never called it": (
            watchdogs(overdue(0, 133), overdue(1, 133, 135), overdue(2, enqueued=132)),
            "rank 2 never called ALLREDUCE, collective 133 of group 0(default_pg), in which rank 0-1 waited",
        ),
        "one is stuck in an earlier one": (
            watchdogs(overdue(0, 133), overdue(1, 132, 132), overdue(2, 133)),
            "rank 1 did not get through ALLREDUCE, collective 132 of group 0(default_pg); rank 0,2 did",
        ),
    },
    silent_on={
        "all waited in the same": watchdogs(overdue(0, 133), overdue(1, 133)),
        "one rank's words alone": watchdogs(overdue(0, 133)),
        "another group's status": watchdogs(overdue(0, 133), overdue(1, enqueued=4, group="7(tp)")),
        "it had called it, and wrote nothing more": watchdogs(
            overdue(0, 133), overdue(1, enqueued=133)
        ),
    },
    since="0.1",
    unstaged="it is read after the fact, in words taken from PyTorch's own source: they need GPUs",
)
