"""NCCL's own service reports an error on a rank.

## Why it matters
A rank on which NCCL has failed launches nothing more, and its peers wait for it or report a "Remote process
error", which only follows. The service tells the rank before any log does.

## What to do
Read the log of that rank; run once with `NCCL_DEBUG=INFO` to see what NCCL ran into. "Unhandled CUDA
error" is about its GPU: `nvidia-smi`, `dmesg -T | grep -i xid`. "System error" is mostly the network or
/dev/shm.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.collectives.nccl_members import member_of, unique_members
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Place, Severity
from allaboard.facts.instruments.nccl_state import (
    NcclCommunicator,
    NcclRank,
    NcclReport,
    NcclStates,
)

REMOTE_ERROR = "Remote process error"
"""NCCL's words on a rank that lost a peer."""
_CUDA = "on its host: nvidia-smi; dmesg -T | grep -i xid"
_INFO = "read its log; run once with NCCL_DEBUG=INFO"


def check(states: NcclStates) -> Iterator[Claim]:
    failures = [
        (rank, communicator, str(report.place))
        for report in states.reports
        for communicator in report.communicators
        for rank in communicator.ranks
        if rank.error
    ]
    # Those that lost a peer are victims: they are told only where nobody else is.
    causes = [f for f in failures if f[0].error != REMOTE_ERROR] or failures
    by_error: dict[str, list[tuple[NcclRank, NcclCommunicator, str]]] = {}
    for failure in causes:
        by_error.setdefault(failure[0].error, []).append(failure)
    for error, failed in by_error.items():
        members = unique_members(member_of(states, r, c.size) for r, c, _ in failed)
        names = ", ".join(f"rank {m.rank}" if m.rank >= 0 else m.name for m in members[:4])
        more = f" and {len(members) - 4} more" if len(members) > 4 else ""
        yield Claim(
            summary=f"NCCL reports an error on {names}{more}: {error}",
            who=members,
            evidence=tuple(
                Evidence(
                    f"communicator {c.key}: rank {r.rank}, pid {r.pid} on {r.host}, GPU {r.gpu}: {error}",
                    origin,
                )
                for r, c, origin in failed[:4]
            ),
            fix=_CUDA if "CUDA" in error else _INFO,
            severity=Severity.ERROR,
            certainty=Certainty.LIKELY,
        )


def _states(*ranks: NcclRank) -> NcclStates:
    communicator = NcclCommunicator(key="ae94", size=8, ranks=ranks)
    report = NcclReport(communicators=(communicator,), place=Place(file="ras.txt", line=1))
    return NcclStates(reports=(report,))


def _rank(number: int, error: str = "") -> NcclRank:
    return NcclRank(rank=number, host="10.0.0.3", pid=3480 + number, gpu=str(number), error=error)


RULE = Rule(
    reads=NcclStates,
    check=check,
    fires_on={
        "one rank has failed, and two others have lost a peer": (
            _states(
                _rank(1, REMOTE_ERROR), _rank(2, "Unhandled CUDA error"), _rank(3, REMOTE_ERROR)
            ),
            "NCCL reports an error on rank 2: Unhandled CUDA error",
        ),
        "only a rank that lost its peer has an error": (
            _states(_rank(1, REMOTE_ERROR)),
            f"NCCL reports an error on rank 1: {REMOTE_ERROR}",
        ),
    },
    silent_on={"no rank has an error": _states(_rank(1))},
    unstaged="NCCL needs GPUs; its inputs are from NCCL's source",
)
