"""NCCL's watchdogs show that some ranks did not enter a collective in which the others waited for them.

## Why it matters
The watchdog reports on the victims, and ends them with SIGABRT; launchers then name one of those as the
root cause. The rank at fault logged only how far it got: fewer collectives of the group than the others.

## What to do
Look at what the named ranks did at that time: their own log, a `py-spy dump --pid PID` while the job hangs, a
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
from allaboard.facts import Certainty, Claim, Evidence, Watchdogs, Who
from allaboard.facts.rank_sets import name_ranks
from allaboard.facts.samples import overdue_collective, sample_watchdogs


def check(watchdogs: Watchdogs) -> Iterator[Claim]:
    for difference in compare_watchdogs(watchdogs):
        if isinstance(difference, LateRanks):
            yield _claim(difference)


MIN_LATE_S = 5.0
"""How much later than the others' a watchdog reports before its process counts as one that did not run."""
_STOPPED_FIX = (
    "ps -o pid,stat,etime,args -p PID   # on its host: T is stopped by a signal or a debugger, D "
    "waits for a disk "
    "or a driver; else the host, the virtual machine or the container was paused, or swapped: dmesg -T"
)


def _was_stopped(late: LateRanks) -> bool:
    """Return True if the late ranks' watchdog, too, did not run for a while."""
    return late.was_called and late.late_report.late_s - late.waiting_report.late_s >= MIN_LATE_S


def _claim(late: LateRanks) -> Claim:
    waiting_report, late_report = late.waiting_report, late.late_report
    waiting_clause = f"{name_ranks(late.waiting)} waited"
    if late.was_called:
        summary = (
            f"{name_ranks(late.ranks)} did not get through {late_report.op}, collective {late_report.number} "
            f"of group {late_report.group}; {name_ranks(late.waiting)} did"
        )
        fix = (
            _STOPPED_FIX
            if _was_stopped(late)
            else (
                f"look at the GPU, the links and the host of {name_ranks(late.ranks)}: nvidia-smi; "
                "dmesg -T | grep -i xid"
            )
        )
    else:
        summary = (
            f"{name_ranks(late.ranks)} never called {waiting_report.op}, "
            f"collective {waiting_report.number} of group {waiting_report.group}, in which {waiting_clause}"
        )
        fix = f"look at {name_ranks(late.ranks)}: its log, or py-spy dump --pid PID while it hangs"
    evidence = [
        Evidence(late_report.line, str(late_report.place)),
        Evidence(waiting_report.line, str(waiting_report.place)),
    ]
    if _was_stopped(late):
        evidence.append(
            Evidence(
                f"its watchdog, which looks about every second, reported {late_report.late_s:.0f} s after "
                "the timeout: its process did not run then",
                str(late_report.place),
            )
        )
    if waiting_report.where is not None:
        evidence.append(
            Evidence(
                f"{describe_overdue(waiting_report)} is called at {waiting_report.where}",
                "Flight Recorder",
            )
        )
    return Claim(
        summary=summary,
        who=tuple(Who(index=r, rank=r) for r in late.ranks[:64]),
        evidence=tuple(evidence),
        fix=fix,
        certainty=Certainty.LIKELY,
    )


RULE = Rule(
    reads=Watchdogs,
    check=check,
    fires_on={
        "one of three ranks never called the collective": (
            sample_watchdogs(
                overdue_collective(0, 133),
                overdue_collective(1, 133, 135),
                overdue_collective(2, enqueued=132),
            ),
            "rank 2 never called ALLREDUCE, collective 133 of group 0(default_pg), in which ranks 0-1 waited",
        ),
        "one of three ranks is stuck in the collective before": (
            sample_watchdogs(
                overdue_collective(0, 133),
                overdue_collective(1, 132, 132),
                overdue_collective(2, 133),
            ),
            "rank 1 did not get through ALLREDUCE, collective 132 of group 0(default_pg); ranks 0 and 2 did",
        ),
        "one of two ranks was stopped, and its watchdog with it": (
            sample_watchdogs(
                overdue_collective(0, 18, 19, late_s=0.1),
                overdue_collective(1, 11, 18, late_s=15.0),
            ),
            "rank 1 did not get through ALLREDUCE, collective 11 of group 0(default_pg); rank 0 did",
        ),
    },
    silent_on={
        "all ranks waited in the same collective": sample_watchdogs(
            overdue_collective(0, 133), overdue_collective(1, 133)
        ),
        "only the log of one rank is known": sample_watchdogs(overdue_collective(0, 133)),
        "the other rank reports the status of another group": sample_watchdogs(
            overdue_collective(0, 133), overdue_collective(1, enqueued=4, group="7(tp)")
        ),
        "the other rank had called the collective, and wrote nothing more": sample_watchdogs(
            overdue_collective(0, 133), overdue_collective(1, enqueued=133)
        ),
    },
    unstaged="it is read after the fact; recordings of real runs on a GPU are in bench/field",
)
