"""Whose a glimpse is, by what the others tell: the same pid, another number that may be a rank. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

import msgspec

from allaboard.facts import Glimpse


def identified(glimpses: Iterable[Glimpse], one_node: bool) -> list[Glimpse]:
    """The glimpses, in order, with the pids and ranks that are known of them. ``one_node``: whether numbers
    on a node may be ranks."""
    observed = _by_pid(_without_clashes(_by_name(list(glimpses))))
    return _by_pid(_by_guess(observed)) if one_node else observed


def _by_name(observed: list[Glimpse]) -> list[Glimpse]:
    """With the pid, where a file without one has the pid in its name that another dump tells."""
    pids = {str(g.pid): g.pid for g in observed if g.pid and g.stack is not None}
    if not pids:
        return observed
    found = []
    for one in observed:
        name = PurePosixPath(one.origin.file).name
        words = "".join(c if c.isdigit() else " " for c in name).split()
        told = {pids[w] for w in words if w in pids}
        plain = not one.pid and one.rank < 0 and one.stack is not None and len(told) == 1
        found.append(msgspec.structs.replace(one, pid=told.pop()) if plain else one)
    return found


def _by_pid(observed: list[Glimpse]) -> list[Glimpse]:
    """With the rank that another glimpse of the same process tells; a dump does not say its host."""
    ranks: dict[int, set[tuple[str, int]]] = {}
    for one in observed:
        if one.pid and one.rank >= 0:
            ranks.setdefault(one.pid, set()).add((one.host, one.rank))
    found = []
    for one in observed:
        known = {
            r for host, r in ranks.get(one.pid, ()) if not (host and one.host) or host == one.host
        }
        plain = one.rank < 0 and not one.role and len(known) == 1
        found.append(msgspec.structs.replace(one, rank=known.pop()) if plain else one)
    return found


def _without_clashes(observed: list[Glimpse]) -> list[Glimpse]:
    """A rank of which two processes were dumped is none: it is a number on each of two nodes."""
    pids: dict[int, set[tuple[str, int]]] = {}
    for one in observed:
        if one.rank >= 0 and one.pid and one.stack is not None:
            pids.setdefault(one.rank, set()).add((one.host, one.pid))
    clash = {rank for rank, own in pids.items() if len(own) > 1}
    return [
        msgspec.structs.replace(one, rank=-1, guess=-1)
        if one.rank in clash and one.pid and one.stack is not None
        else one
        for one in observed
    ]


def taken_for_one(observed: Iterable[Glimpse]) -> Iterator[str]:
    """What to say of a pid without a rank that two files have at two places: it may be one process that
    moved, or two of two hosts."""
    files: dict[int, dict[object, str]] = {}
    for one in observed:
        if one.pid and one.rank < 0 and not one.host and one.stack is not None:
            files.setdefault(one.pid, {}).setdefault(one.stack.user, one.origin.file)
    for pid, places in files.items():
        first, *others = dict.fromkeys(places.values())
        if others:
            yield (
                f"{first}: pid {pid} is in {others[0]} too, at another place, and the later one counts; "
                "if they are of two hosts, call the files rank0.txt, rank1.txt"
            )


def _by_guess(observed: list[Glimpse]) -> list[Glimpse]:
    """With the ranks that are likely, where each is that of one process: else they are other numbers."""
    owners: dict[int, set[tuple[object, ...]]] = {}
    for number, one in enumerate(observed):
        if one.rank >= 0:
            owners.setdefault(one.rank, set()).add(("rank",))
        elif one.guess >= 0 and not one.role:
            key = ("pid", one.host, one.pid) if one.pid else ("file", one.origin.file, number)
            owners.setdefault(one.guess, set()).add(key)
    if any(len(own) > 1 for own in owners.values()):
        return observed
    return [
        msgspec.structs.replace(one, rank=one.guess)
        if one.rank < 0 and one.guess >= 0 and not one.role
        else one
        for one in observed
    ]
