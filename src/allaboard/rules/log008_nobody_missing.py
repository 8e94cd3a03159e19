"""NCCL's watchdogs show that every rank entered the collective, and still it did not end.

## Why it matters
The usual advice for a collective that timed out is to look for the missing rank. Here none is missing: all
of them called it, with the same operation and size. What failed is what carries it: a GPU, its link to
another, the network, or the path that NCCL chose.

## What to do
Run once with `NCCL_DEBUG=INFO`, and look for Xid errors on each host. Try `NCCL_P2P_DISABLE=1` (links
between GPUs of a host) or `NCCL_IB_DISABLE=1` (InfiniBand and RoCE), and `all_reduce_perf` of nccl-tests
between the same hosts. If collectives of several groups run at once, make sure that all ranks call them in
the same order.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.collectives.nccl_watchdogs import (
    AllWaiting,
    compare_watchdogs,
    describe_overdue,
)
from allaboard.contracts import Relations, Rule
from allaboard.facts import Certainty, Claim, Evidence, Watchdogs
from allaboard.facts.rank_sets import format_ranks
from allaboard.facts.samples import overdue_collective, sample_watchdogs


def check(watchdogs: Watchdogs) -> Iterator[Claim]:
    for difference in compare_watchdogs(watchdogs):
        if isinstance(difference, AllWaiting):
            yield _claim(difference)


def _claim(complete: AllWaiting) -> Claim:
    report = complete.report
    evidence = [
        Evidence(f"all of them called {describe_overdue(report)}", "logs"),
        Evidence(report.line, str(report.place)),
    ]
    if report.completed <= 0:
        evidence.append(
            Evidence("no collective of this group has ever been completed", str(report.place))
        )
    if report.where is not None:
        evidence.append(Evidence(f"it is called at {report.where}", "Flight Recorder"))
    doubt = "that there is no further rank whose log is not here, or that two groups' calls are not crossed"
    evidence.append(Evidence(doubt, "what this does not prove"))
    return Claim(
        summary=f"ranks {format_ranks(complete.ranks)} all waited in {report.op}, "
        f"collective {report.number} of group {report.group}, and none of them is missing: "
        "the GPU, link or network that carries it failed",
        evidence=tuple(evidence),
        fix="run once with NCCL_DEBUG=INFO; dmesg -T | grep -i xid on each host; NCCL_P2P_DISABLE=1 or "
        "NCCL_IB_DISABLE=1 as a trial shows which link",
        certainty=Certainty.LIKELY,
    )


RULE = Rule(
    reads=Watchdogs,
    check=check,
    fires_on={
        "all three ranks waited in the same collective": (
            sample_watchdogs(
                overdue_collective(0, 133, 135),
                overdue_collective(1, 133, 134),
                overdue_collective(2, 133, 135),
            ),
            "ranks 0-2 all waited in ALLREDUCE, collective 133 of group 0(default_pg), and none of them is "
            "missing: the GPU, link or network that carries it failed",
        )
    },
    silent_on={
        "a rank between two that waited has left no message": sample_watchdogs(
            overdue_collective(0, 133), overdue_collective(2, 133)
        ),
        "one of three ranks never called the collective, which LOG007 reports": sample_watchdogs(
            overdue_collective(0, 133),
            overdue_collective(1, 133),
            overdue_collective(2, enqueued=132),
        ),
        "one of three ranks had called the collective, and wrote nothing more": sample_watchdogs(
            overdue_collective(0, 133),
            overdue_collective(1, 133),
            overdue_collective(2, enqueued=133),
        ),
        "the log of a third rank is known, and it did not wait": sample_watchdogs(
            overdue_collective(0, 133), overdue_collective(1, 133), other_ranks=(0, 1, 2)
        ),
        "one rank sends a message, and the other receives one": sample_watchdogs(
            overdue_collective(0, 133, op="SEND"), overdue_collective(1, 133, op="RECV")
        ),
    },
    unstaged="it is read after the fact, in words taken from PyTorch's own source: they need GPUs",
    relations=Relations(names_nobody=True),
)
