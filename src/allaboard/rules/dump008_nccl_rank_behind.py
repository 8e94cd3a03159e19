"""Ranks of an NCCL communicator have not launched the operations that the others have launched.

## Why it matters
A collective ends only when all ranks of the communicator have launched it. A rank that is behind, or that has
launched another operation in its place, holds up all others. But one answer of NCCL's service is one moment:
in a job that trains, ranks differ by an operation or two all the time.

## What to do
Ask again after ten seconds (`ncclras`), and give both answers to `allaboard diagnose`: if the counts have not
changed, no rank makes progress, and the finding is likely. Then look at the ranks that are named:
`allaboard diagnose PID` on their host.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.collectives.nccl_members import member_of, unique_members
from allaboard.analysis.collectives.nccl_progress import (
    UnevenCommunicator,
    UnevenCount,
    uneven_communicators,
)
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Place, Severity
from allaboard.facts.instruments.nccl_state import (
    NcclCommunicator,
    NcclRank,
    NcclReport,
    NcclStates,
    OperationCount,
)

MAX_NAMED = 8
"""Ranks that the sentence names before it counts the rest."""


def check(states: NcclStates) -> Iterator[Claim]:
    for uneven in uneven_communicators(states):
        yield _claim(states, uneven)


def _claim(states: NcclStates, uneven: UnevenCommunicator) -> Claim:
    size = uneven.communicator.size
    members = unique_members(member_of(states, rank, size) for rank in uneven.outliers)
    main_count = uneven.counts[0]
    evidence = [Evidence(_describe(c), uneven.origin) for c in uneven.counts[:4]]
    evidence += [
        Evidence(f"rank {r.rank} is pid {r.pid} on {r.host}, GPU {r.gpu}", uneven.origin)
        for r in uneven.outliers[:2]
        if r.pid
    ]
    if uneven.is_standing:
        evidence.append(Evidence("an earlier answer has the same counts", "NCCL's service"))
    else:
        doubt = (
            "that it stands still: this is one moment, and ranks of a job that trains differ too"
        )
        evidence.append(Evidence(doubt, "what this does not prove"))
    pid = next((r.pid for r in uneven.outliers if r.pid), 0)
    look = f"allaboard diagnose {pid or 'PID'}"
    side, opposite = _sides(main_count)
    return Claim(
        summary=f"{_subject(side)} of the {size or 'known'} ranks of NCCL's communicator "
        f"{uneven.communicator.key} launched {_operations(main_count)} {side.count} times, "
        f"others {opposite.count} times",
        who=members,
        evidence=tuple(evidence),
        fix=look
        if uneven.is_standing
        else f"ask again after 10 s (ncclras), and diagnose both answers; or {look}",
        severity=Severity.ERROR if uneven.is_standing else Severity.WARNING,
        certainty=Certainty.LIKELY if uneven.is_standing else Certainty.UNKNOWN,
    )


def _sides(count: UnevenCount) -> tuple[OperationCount, OperationCount]:
    """Return the side of fewer ranks, and the opposite one; of two equal sides, the one behind."""
    if count.ahead.size < count.behind.size:
        return count.ahead, count.behind
    return count.behind, count.ahead


def _subject(side: OperationCount) -> str:
    numbers = [str(r.rank) for r in side.ranks if r.rank >= 0]
    if not numbers or len(numbers) != side.size:
        return f"{side.size}"
    more = f" and {len(numbers) - MAX_NAMED} more" if len(numbers) > MAX_NAMED else ""
    return f"rank{'s' if len(numbers) > 1 else ''} {', '.join(numbers[:MAX_NAMED])}{more}"


def _operations(count: UnevenCount) -> str:
    return count.operation or "operations"


def _describe(count: UnevenCount) -> str:
    return (
        f"{_operations(count)}: {count.ahead.size} ranks launched {count.ahead.count}, "
        f"{count.behind.size} launched {count.behind.count}"
    )


def _report(behind: int, ahead: int, line: int = 1, op: str = "AllReduce") -> NcclReport:
    late = NcclRank(rank=2, host="10.0.0.3", pid=3487, gpu="2")
    counts = (
        OperationCount(count=ahead, size=31),
        OperationCount(count=behind, size=1, ranks=(late,)),
    )
    communicator = NcclCommunicator(key="ae94", size=32, counts={op: counts})
    return NcclReport(communicators=(communicator,), place=Place(file="ras.txt", line=line))


RULE = Rule(
    reads=NcclStates,
    check=check,
    fires_on={
        "one rank is behind, and two answers have the same counts": (
            NcclStates(reports=(_report(9, 10), _report(9, 10, 40))),
            "rank 2 of the 32 ranks of NCCL's communicator ae94 launched AllReduce 9 times, others 10 times",
        ),
        "one rank is behind in a single answer": (
            NcclStates(reports=(_report(9, 10),)),
            "rank 2 of the 32 ranks of NCCL's communicator ae94 launched AllReduce 9 times, others 10 times",
        ),
        "the others have gone on since the answer before, and the one behind has not": (
            NcclStates(reports=(_report(9, 10), _report(9, 12, 40))),
            "rank 2 of the 32 ranks of NCCL's communicator ae94 launched AllReduce 9 times, others 12 times",
        ),
        "one rank is ahead of all others": (
            NcclStates(reports=(_report(11, 10),)),
            "rank 2 of the 32 ranks of NCCL's communicator ae94 launched AllReduce 11 times, others 10 times",
        ),
    },
    silent_on={
        "the ranks of a job that trains: the one behind has gone on since the answer before": NcclStates(
            reports=(_report(1196, 1198), _report(1204, 1206, 40))
        ),
        "all ranks are equally far": NcclStates(reports=(_report(10, 10),)),
        "an answer without counts of operations": NcclStates(
            reports=(
                NcclReport(
                    communicators=(NcclCommunicator(key="a", size=8),), place=Place(file="ras.txt")
                ),
            )
        ),
    },
    unstaged="NCCL needs GPUs; its inputs are from NCCL's source",
)
