"""Which ranks messages of NCCL and of the store are about, if the other logs tell: they name none themselves.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import msgspec

from allaboard.diagnosis.instruments.nccl_start import STARTS_NCCL
from allaboard.diagnosis.wordings.nccl_id_messages import WAITS_IN_GROUP
from allaboard.facts import Finding, Heard, Severity, Who
from allaboard.facts.rank_sets import name_ranks

_LOST = re.compile(r"a peer at (?P<peer>\S+) went away in the middle of a collective$")
_COUNTED = re.compile(r"the store of rank 0 counted (?P<here>\d+) of (?P<size>\d+) members")
_OF_OTHERS = re.compile(r"[Tt]imed? ?out|DistStoreError|DistNetworkError|Connection")
"""What an exception says that others caused."""
_LOCAL = re.compile(r"localhost|127\.|::1$")
_UNEXPLAINED_END_FIX = (
    "how did {ranks} end? Its launcher's exit code (137, -9: killed; 139, -11: crashed); on its host: "
    "dmesg -T | grep -iE 'killed process|segfault'; python -X faulthandler shows where it crashes"
)
_ALL_START_FIX = (
    "all ranks have come, so the way between them is next: echo $NCCL_SOCKET_IFNAME; ip -br address   # "
    "on each host; every rank must reach every other on all ports above 1024; while it hangs: py-spy "
    "dump --native --pid PID"
)


def with_absentees(
    heard: Sequence[Heard], ends: Sequence[Finding], empty_ranks: Collection[int], log_count: int
) -> list[Heard]:
    """Return the messages with the ranks that the other logs add, and without those that known ends explain.

    Args:
        heard: Each message once, with all who wrote it.
        ends: Findings about members that ended.
        empty_ranks: Ranks whose logs have no line.
        log_count: How many ranks have a log here.
    """
    failed = {w.rank for f in ends if _failed_by_itself(f) for w in f.who} - {-1}
    errors = [h for h in heard if h.severity is Severity.ERROR and STARTS_NCCL not in h.says]
    starting = {s.rank for h in heard if STARTS_NCCL in h.says for s in h.speakers} - {-1}
    amended = []
    for message in heard:
        if STARTS_NCCL in message.says:
            if not (errors or failed):
                amended.append(_starting(message, log_count))
        elif counted := _COUNTED.match(message.says):
            missing = int(counted["size"]) - int(counted["here"])
            writers = {s.rank for s in message.speakers}
            if len(failed - writers) < missing:
                amended.append(_counted(message, missing, empty_ranks))
        elif WAITS_IN_GROUP in message.says and starting - {s.rank for s in message.speakers}:
            amended.append(_in_other_group(message, starting))
        elif (lost := _LOST.match(message.says)) and len(message.silent) == 1:
            amended.append(_lost(message, lost["peer"]))
        else:
            amended.append(message)
    return amended


def _failed_by_itself(finding: Finding) -> bool:
    """Return False for a finding about a member that waited for others or lost them."""
    quotes = [e.observed for e in finding.evidence[:1]]
    return finding.severity is Severity.ERROR and not any(map(_OF_OTHERS.search, quotes))


def _starting(message: Heard, log_count: int) -> Heard:
    """Return the message that the log of a rank ends in the start of NCCL."""
    if message.silent:
        names = name_ranks(message.silent)
        waiting = name_ranks(tuple(sorted({s.rank for s in message.speakers})))
        return msgspec.structs.replace(
            message,
            says=f"{names} {_have(message.silent)} not come to the start of an NCCL communicator, in "
            f"which {waiting} {'wait' if len(message.speakers) > 1 else 'waits'} when the logs end",
            fix=f"{names}: what does it do instead of its first collective? its log, or, while the job "
            "hangs, py-spy dump --pid PID",
        )
    ranks = {s.rank for s in message.speakers}
    return (
        msgspec.structs.replace(message, fix=_ALL_START_FIX)
        if len(ranks) == log_count > 1
        else message
    )


def _counted(message: Heard, missing: int, empty_ranks: Collection[int]) -> Heard:
    """Return what the store counted, with the ranks that have written nothing, if they are as many."""
    if len(empty_ranks) != missing:
        return message
    names = name_ranks(tuple(sorted(empty_ranks)))
    return msgspec.structs.replace(
        message,
        says=f"{message.says}; {names} {_have(empty_ranks)} written nothing",
        about=tuple(Who(index=r, rank=r) for r in sorted(empty_ranks)),
        fix=f"{names}: does it run, and where is it before init_process_group? On its host: py-spy "
        f"dump --pid PID",
        proves_not="that it failed: one that loads data or imports for longer than the timeout "
        "counts as absent",
    )


def _in_other_group(message: Heard, starting: Collection[int]) -> Heard:
    """Return that a rank waited in one group, and those that it waited for in the start of another."""
    names = name_ranks(tuple(sorted(starting)))
    waits = "wait" if len(starting) > 1 else "waits"
    clause = f"; {names} {waits} in the start of another communicator when the log ends"
    return msgspec.structs.replace(message, says=message.says + clause)


def _lost(message: Heard, peer: str) -> Heard:
    """Return that a peer went away, as the rank whose log is silent."""
    names = name_ranks(message.silent)
    at_peer = "" if _LOCAL.match(peer) else f" ({peer})"
    return msgspec.structs.replace(
        message,
        says=f"{names}{at_peer} went away in the middle of a collective, and its log does not say why",
        fix=_UNEXPLAINED_END_FIX.format(ranks=names),
    )


def _have(ranks: Collection[int]) -> str:
    return "have" if len(ranks) > 1 else "has"
