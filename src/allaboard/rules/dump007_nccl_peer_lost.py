"""A process of the job does not answer NCCL's own service (RAS).

## Why it matters
NCCL runs a thread in every process that answers even while a collective hangs. A process that does not answer
is stopped, gone, or cut off, and all others wait for it. After a minute without an answer NCCL considers it
dead, and no longer asks it.

## What to do
Look at that process on its host: `ps -o pid,stat,etime -p PID` (T is stopped, Z has ended), the log of
its rank, and `dmesg -T`. If the whole host is silent, look at the host and its network. The service sees
only processes that have made a communicator, and it counts ranks within each.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.collectives.nccl_members import LostProcess, lost_processes, unique_members
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Place, Severity, Who
from allaboard.facts.instruments.nccl_state import (
    NcclAnswer,
    NcclCommunicator,
    NcclRank,
    NcclReport,
    NcclStates,
)

MAX_NAMED = 4
"""Processes that the sentence names before it counts the rest."""


def check(states: NcclStates) -> Iterator[Claim]:
    losses = lost_processes(states)
    if not losses:
        return
    given_up = all(loss.rank.answer is NcclAnswer.DEAD for loss in losses)
    named = ", ".join(_name(loss) for loss in losses[:MAX_NAMED])
    more = f" and {len(losses) - MAX_NAMED} more" if len(losses) > MAX_NAMED else ""
    several = len(losses) > 1
    if given_up:
        state = (
            f"{'have' if several else 'has'} not answered NCCL for a minute or longer, and "
            f"{'are' if several else 'is'} considered dead"
        )
    else:
        state = f"{'do' if several else 'does'} not answer NCCL"
    pids = [loss.rank.pid for loss in losses if loss.rank.pid]
    hosts = {loss.rank.host for loss in losses}
    where = f"on {hosts.pop()}: " if len(hosts) == 1 and "" not in hosts else "on its host: "
    listed = ",".join(map(str, pids[:MAX_NAMED])) or "PID"
    yield Claim(
        summary=f"{named}{more} {state}",
        who=unique_members(loss.who for loss in losses),
        evidence=tuple(
            Evidence(f"NCCL's service: {_describe(loss)}", loss.origin)
            for loss in losses[:MAX_NAMED]
        ),
        fix=f"{where}ps -o pid,stat,etime,wchan,args -p {listed}; "
        f"allaboard diagnose {pids[0] if pids else 'PID'}",
        severity=Severity.ERROR,
        certainty=Certainty.LIKELY,
    )


def _name(loss: LostProcess) -> str:
    return f"rank {loss.who.rank}" if loss.who.rank >= 0 else loss.who.name


def _describe(loss: LostProcess) -> str:
    rank = loss.rank
    parts = [f"rank {rank.rank}"] if rank.rank >= 0 else []
    parts += [f"pid {rank.pid} on {rank.host}"] if rank.pid else []
    parts += [f"GPU {rank.gpu}"] if rank.gpu else []
    state = "considered dead" if rank.answer is NcclAnswer.DEAD else "no answer"
    return f"{', '.join(parts)}: {state}"


_PLACE = Place(file="ras.txt", line=1)


def _states(*ranks: NcclRank, size: int = 32, members: tuple[Who, ...] = ()) -> NcclStates:
    communicator = NcclCommunicator(key="ae94", size=size, ranks=ranks)
    report = NcclReport(communicators=(communicator,), place=_PLACE)
    return NcclStates(reports=(report,), members=members)


def _rank(answer: NcclAnswer, error: str = "") -> NcclRank:
    return NcclRank(rank=21, host="10.0.0.3", pid=3487, gpu="5", answer=answer, error=error)


RULE = Rule(
    reads=NcclStates,
    check=check,
    fires_on={
        "a rank does not answer": (
            _states(_rank(NcclAnswer.SILENT)),
            "rank 21 does not answer NCCL",
        ),
        "a rank that NCCL considers dead": (
            _states(_rank(NcclAnswer.DEAD)),
            "rank 21 has not answered NCCL for a minute or longer, and is considered dead",
        ),
        "a process that is in no communicator does not answer": (
            NcclStates(
                reports=(
                    NcclReport(
                        processes=(NcclRank(host="h", pid=5, answer=NcclAnswer.SILENT),),
                        place=_PLACE,
                    ),
                )
            ),
            "pid 5 does not answer NCCL",
        ),
        "a silent process whose rank in the job is known by its pid": (
            _states(
                _rank(NcclAnswer.SILENT),
                size=8,
                members=(Who(index=3, rank=3, host="n", pid=3487),),
            ),
            "rank 3 does not answer NCCL",
        ),
    },
    silent_on={
        "all ranks answer": _states(),
        "a rank answers, and reports an error": _states(
            _rank(NcclAnswer.PRESENT, error="System error")
        ),
    },
    unstaged="NCCL needs GPUs; its inputs are from NCCL's source",
)
