"""NCCL's watchdogs show that ranks waited in different collectives at one number of a group.

## Why it matters
NCCL matches collectives by their order alone. If one rank calls another operation, or the same with another
number of elements, all of them wait until the timeout, and each reports only its own call.

## What to do
Compare what the ranks run: a branch on the rank, parameters that only some have, a shorter last batch, a
different number of steps; models or tokenizers of another version.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.collectives.nccl_watchdogs import (
    UnequalCalls,
    compare_watchdogs,
    describe_overdue,
    watchdog_certainty,
)
from allaboard.contracts import Rule
from allaboard.facts import Claim, Evidence, Watchdogs, Who
from allaboard.facts.rank_sets import name_ranks
from allaboard.facts.samples import overdue_collective, sample_watchdogs


def check(watchdogs: Watchdogs) -> Iterator[Claim]:
    for difference in compare_watchdogs(watchdogs):
        if isinstance(difference, UnequalCalls):
            yield _claim(difference)


def _claim(unequal: UnequalCalls) -> Claim:
    first_report = unequal.sides[0][1]
    sides = [f"{name_ranks(ranks)} {describe_overdue(entry)}" for ranks, entry in unequal.sides[:3]]
    evidence = [Evidence(entry.line, str(entry.place)) for _, entry in unequal.sides[:2]]
    for ranks, entry in unequal.sides[:3]:
        if entry.where is not None:
            evidence.append(Evidence(f"{name_ranks(ranks)} at {entry.where}", "Flight Recorder"))
    return Claim(
        summary=f"collective {first_report.number} of group {first_report.group} is not the same on all: "
        + "; ".join(sides),
        who=tuple(Who(index=r, rank=r) for r in unequal.outliers[:64]),
        evidence=tuple(evidence),
        fix="make every rank of the group call the same collectives in the same order, with tensors of the "
        "same shape",
        certainty=watchdog_certainty(first_report),
    )


RULE = Rule(
    reads=Watchdogs,
    check=check,
    fires_on={
        "one of three ranks passed 12 elements, the others 1024": (
            sample_watchdogs(
                overdue_collective(0, 133),
                overdue_collective(1, 133),
                overdue_collective(2, 133, elements=(12, 12)),
            ),
            "collective 133 of group 0(default_pg) is not the same on all: ranks 0-1 ALLREDUCE of 1024 "
            "elements; rank 2 ALLREDUCE of 12 elements",
        ),
        "one rank called all_reduce, the other all_gather": (
            sample_watchdogs(
                overdue_collective(0, 133),
                overdue_collective(1, 133, op="_ALLGATHER_BASE", elements=(8, 16)),
            ),
            "collective 133 of group 0(default_pg) is not the same on all: rank 0 ALLREDUCE of 1024 "
            "elements; rank 1 _ALLGATHER_BASE of 8 elements into 16",
        ),
    },
    silent_on={
        "both ranks called the same collective": sample_watchdogs(
            overdue_collective(0, 133), overdue_collective(1, 133)
        ),
        "a gather, in which only the root has an output": sample_watchdogs(
            overdue_collective(0, 133, op="GATHER", elements=(4, 0)),
            overdue_collective(1, 133, op="GATHER", elements=(4, 8)),
        ),
        "the ranks waited in collectives of different numbers": sample_watchdogs(
            overdue_collective(0, 133), overdue_collective(1, 132, elements=(12, 12))
        ),
        "one rank is behind, and waits in another group": sample_watchdogs(
            overdue_collective(0, 133),
            overdue_collective(1, 133, group="3(tp)", op="_ALLGATHER_BASE"),
        ),
    },
    unstaged="it is read after the fact; recordings of real runs on a GPU are in bench/field",
)
