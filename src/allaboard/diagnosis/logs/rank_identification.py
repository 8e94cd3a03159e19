"""Ranks of glimpses, by what the others state: the same pid, another number that may be a rank. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

import msgspec

from allaboard.facts import Glimpse


def identify_ranks(glimpses: Iterable[Glimpse], one_node: bool) -> list[Glimpse]:
    """Return the glimpses, in order, with the pids and ranks that are known of them.

    ``one_node``: the job ran on one node, so the rank on a node may be the rank.
    """
    observed = _with_ranks_by_pid(_without_clashes(_with_pids_from_names(list(glimpses))))
    return _with_ranks_by_pid(_with_likely_ranks(observed)) if one_node else observed


def _with_pids_from_names(observed: list[Glimpse]) -> list[Glimpse]:
    """Return the glimpses, with the pid of another dump where a file's name contains it."""
    pids = {str(g.pid): g.pid for g in observed if g.pid and g.stack is not None}
    if not pids:
        return observed
    result = []
    for glimpse in observed:
        name = PurePosixPath(glimpse.origin.file).name
        numbers = "".join(c if c.isdecimal() else " " for c in name).split()
        named_pids = {pids[w] for w in numbers if w in pids}
        is_identified = (
            not glimpse.pid
            and glimpse.rank < 0
            and glimpse.stack is not None
            and len(named_pids) == 1
        )
        result.append(
            msgspec.structs.replace(glimpse, pid=named_pids.pop()) if is_identified else glimpse
        )
    return result


def _with_ranks_by_pid(observed: list[Glimpse]) -> list[Glimpse]:
    """Return the glimpses, with the rank that another one of the same process has; a dump does not state its
    host."""
    ranks: dict[int, set[tuple[str, int]]] = {}
    for glimpse in observed:
        if glimpse.pid and glimpse.rank >= 0:
            ranks.setdefault(glimpse.pid, set()).add((glimpse.host, glimpse.rank))
    result = []
    for glimpse in observed:
        candidates = {
            r
            for host, r in ranks.get(glimpse.pid, ())
            if not (host and glimpse.host) or host == glimpse.host
        }
        is_identified = glimpse.rank < 0 and not glimpse.role and len(candidates) == 1
        result.append(
            msgspec.structs.replace(glimpse, rank=candidates.pop()) if is_identified else glimpse
        )
    return result


def _without_clashes(observed: list[Glimpse]) -> list[Glimpse]:
    """Return the glimpses without ranks that two dumped processes have: they are numbers on each of two
    nodes."""
    pids: dict[int, set[tuple[str, int]]] = {}
    for glimpse in observed:
        if glimpse.rank >= 0 and glimpse.pid and glimpse.stack is not None:
            pids.setdefault(glimpse.rank, set()).add((glimpse.host, glimpse.pid))
    clash = {rank for rank, owners in pids.items() if len(owners) > 1}
    return [
        msgspec.structs.replace(glimpse, rank=-1, guess=-1)
        if glimpse.rank in clash and glimpse.pid and glimpse.stack is not None
        else glimpse
        for glimpse in observed
    ]


def ambiguous_pid_notes(observed: Iterable[Glimpse]) -> Iterator[str]:
    """Yield a note for each pid without a rank that two files have at two places.

    It may be one process that moved, or two processes of two hosts.
    """
    files: dict[int, dict[object, str]] = {}
    for glimpse in observed:
        if glimpse.pid and glimpse.rank < 0 and not glimpse.host and glimpse.stack is not None:
            files.setdefault(glimpse.pid, {}).setdefault(glimpse.stack.user, glimpse.origin.file)
    for pid, places in files.items():
        first_file, *other_files = dict.fromkeys(places.values())
        if other_files:
            yield (
                f"{first_file}: pid {pid} is in {other_files[0]} too, at another place; the later one "
                "counts. If they are of two hosts, call the files rank0.txt, rank1.txt"
            )


def _with_likely_ranks(observed: list[Glimpse]) -> list[Glimpse]:
    """Return the glimpses with their likely ranks, if each is that of one process; else they are other
    numbers."""
    owners: dict[int, set[tuple[object, ...]]] = {}
    for number, glimpse in enumerate(observed):
        if glimpse.rank >= 0:
            owners.setdefault(glimpse.rank, set()).add(("rank",))
        elif glimpse.guess >= 0 and not glimpse.role:
            key = (
                ("pid", glimpse.host, glimpse.pid)
                if glimpse.pid
                else ("file", glimpse.origin.file, number)
            )
            owners.setdefault(glimpse.guess, set()).add(key)
    if any(len(keys) > 1 for keys in owners.values()):
        return observed
    return [
        msgspec.structs.replace(glimpse, rank=glimpse.guess)
        if glimpse.rank < 0 and glimpse.guess >= 0 and not glimpse.role
        else glimpse
        for glimpse in observed
    ]
