"""Names of processes whose rank neither environment nor arguments state. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from allaboard.facts import Present
from allaboard.facts.address import whole_number

_TASK_JOBS = ("ps", "worker", "chief", "master", "evaluator")
"""Names that TensorFlow has for the jobs of a cluster."""
MAX_GAPS = 8
"""Tasks without a process that are named."""


def name_unranked(ranks: Sequence[Present]) -> list[Present]:
    """Return the processes; those without a rank get the one that their command lines show, else are called
    by their pids: the order in which they were examined is no rank."""
    unranked = [p for p in ranks if p.member.who.rank < 0 and p.member.who.job == "worker"]
    numbers = ranks_by_differing_word([p.command for p in ranks]) if unranked else []
    # Where ranks are known, the word must be these ranks.
    is_rank = all(p.member.who.rank in (-1, n) for p, n in zip(ranks, numbers, strict=False))
    by_pid = {
        (p.member.who.host, p.member.who.pid): n
        for p, n in zip(ranks, numbers, strict=False)
        if is_rank
    }
    return [_named_by_words(_renamed(p, by_pid)) if p in unranked else p for p in ranks]


def task_by_words(command: Sequence[str]) -> tuple[str, int] | None:
    """Return the job and index of a TensorFlow task that its script gets as two words (``train.py ps 0``);
    None without them, or if two pairs of words could be meant."""
    pairs = {
        (job, number)
        for job, index in pairwise(command)
        if job in _TASK_JOBS
        and (number := whole_number(index)) is not None
        and 0 <= number < 100_000
    }
    return pairs.pop() if len(pairs) == 1 else None


def _named_by_words(process: Present) -> Present:
    identity = process.member.who
    if identity.rank >= 0 or process.trains_without_tensorflow:
        return process
    task = task_by_words(process.command)
    if task is None:
        return process
    named = msgspec.structs.replace(identity, job=task[0], index=task[1])
    return msgspec.structs.replace(
        process, member=msgspec.structs.replace(process.member, who=named)
    )


def gap_lines(ranks: Sequence[Present]) -> list[str]:
    """Return a sentence on tasks without a process whose number lies below one of their job's, where the
    command lines alone number the tasks."""
    numbers: dict[str, set[int]] = {}
    for identity in (p.member.who for p in ranks):
        if identity.rank < 0 <= identity.index:
            numbers.setdefault(identity.job, set()).add(identity.index)
    gaps = [
        f"{job} {number}"
        for job, present in numbers.items()
        for number in range(min(max(present), MAX_GAPS))
        if number not in present
    ]
    if not gaps:
        return []
    return [f"{', '.join(gaps)}: no process of {'it' if len(gaps) == 1 else 'them'} was found here"]


def _renamed(process: Present, numbers: dict[tuple[str, int], int]) -> Present:
    identity = process.member.who
    rank = numbers.get((identity.host, identity.pid), -1)
    named = msgspec.structs.replace(identity, rank=rank, index=rank)
    return msgspec.structs.replace(
        process, member=msgspec.structs.replace(process.member, who=named)
    )


def ranks_by_differing_word(commands: Sequence[Sequence[str]]) -> list[int]:
    """Return the ranks of processes whose command lines differ in one word alone, a number of its own for
    each (``train.py 0 4``, ``train.py 1 4``); [] if that is not so.

    The numbers must be all from 0 on, or a number that all have (the world size) must be above them.
    """
    if len(commands) < 2 or len({len(command) for command in commands}) != 1:
        return []
    columns = list(zip(*commands, strict=True))
    differing = [column for column in columns if len(set(column)) > 1]
    if len(differing) != 1:
        return []
    numbers = [whole_number(argument) for argument in differing[0]]
    ranks = [n for n in numbers if n is not None and 0 <= n < 100_000]
    if len(ranks) < len(commands) or len(set(ranks)) < len(ranks):
        return []
    common = [n for column in columns if column not in differing and (n := whole_number(column[0]))]
    is_complete = sorted(ranks) == list(range(len(ranks)))
    return ranks if is_complete or any(max(ranks) < n <= 100_000 for n in common) else []
