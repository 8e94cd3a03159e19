"""Ranks of lines that tell only the number on their node. Pure.

torchrun puts ``[${role_name}${local_rank}]:`` before every line (torch/distributed/elastic/multiprocessing,
log_line_prefix_template). A node's ranks follow each other, so one rank that is known tells them all: by
torch's own ``[rank9]:``, or by the summary of failures, ``rank : 9 (local_rank: 1)``.
"""

from __future__ import annotations

import re
from collections import defaultdict

from allaboard.formats.dumps.log_prefixes import Label

_SUMMARY = re.compile(r"\s*rank\s*: (\d{1,7}) \(local_rank: (\d{1,7})\)")


def assign_ranks(lines: list[tuple[Label, str]]) -> list[tuple[Label, str]]:
    """The same lines, with the rank where it is told. Of one node of which nothing is told it is its first:
    its numbers are the ranks, as far as this file tells, and are kept as ``local``. Of several such the ranks
    are unknown."""
    hosts = {label.host for label, _ in lines if label.local_rank >= 0}
    if not hosts:
        return lines
    firsts = _firsts(lines)
    if len(hosts) == 1 and not any(firsts.values()):
        return [(_as_rank(label), line) for label, line in lines]
    return [(_ranked(label, firsts), line) for label, line in lines]


def _firsts(lines: list[tuple[Label, str]]) -> dict[str, set[int]]:
    """What may be the rank of each node's first process."""
    found: dict[str, set[int]] = defaultdict(set)
    for label, line in lines:
        if label.local_rank >= 0 and label.rank >= 0:
            found[label.host].add(label.rank - label.local_rank)
        elif (told := _SUMMARY.match(line)) is not None:
            found[label.host].add(int(told[1]) - int(told[2]))
    return found


def _as_rank(label: Label) -> Label:
    return label._replace(rank=label.local_rank) if label.local_rank >= 0 else label


def _ranked(label: Label, firsts: dict[str, set[int]]) -> Label:
    if label.local_rank < 0 or label.rank >= 0:
        return label._replace(local_rank=-1)
    known = firsts.get(label.host, set())
    first = next(iter(known)) if len(known) == 1 else -1
    return label._replace(rank=first + label.local_rank, local_rank=-1) if first >= 0 else label
