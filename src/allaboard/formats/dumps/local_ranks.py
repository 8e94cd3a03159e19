"""Global ranks for lines that state only the rank on their node. Pure.

torchrun puts ``[${role_name}${local_rank}]:`` before every line (torch/distributed/elastic/multiprocessing,
log_line_prefix_template). A node's ranks are consecutive, so one known rank determines them all: from torch's
own ``[rank9]:``, or from the summary of failures, ``rank : 9 (local_rank: 1)``.
"""

from __future__ import annotations

import re
from collections import defaultdict

from allaboard.formats.dumps.log_prefixes import Label

_SUMMARY = re.compile(r"\s*rank\s*: (\d{1,7}) \(local_rank: (\d{1,7})\)")


def assign_ranks(lines: list[tuple[Label, str]]) -> list[tuple[Label, str]]:
    """Return the same lines, with the rank where it is known.

    If there is one node and nothing says its first rank, its local ranks are the ranks as far as this file
    tells, and are kept as ``local_rank``. With several such nodes the ranks are unknown.
    """
    hosts = {label.host for label, _ in lines if label.local_rank >= 0}
    if not hosts:
        return lines
    first_ranks = _first_rank_candidates(lines)
    if len(hosts) == 1 and not any(first_ranks.values()):
        return [(_as_rank(label), line) for label, line in lines]
    return [(_assign_rank(label, first_ranks), line) for label, line in lines]


def _first_rank_candidates(lines: list[tuple[Label, str]]) -> dict[str, set[int]]:
    """Return the possible ranks of each node's first process."""
    candidates: dict[str, set[int]] = defaultdict(set)
    for label, line in lines:
        if label.local_rank >= 0 and label.rank >= 0:
            candidates[label.host].add(label.rank - label.local_rank)
        elif (summary := _SUMMARY.match(line)) is not None:
            candidates[label.host].add(int(summary[1]) - int(summary[2]))
    return candidates


def _as_rank(label: Label) -> Label:
    return label._replace(rank=label.local_rank) if label.local_rank >= 0 else label


def _assign_rank(label: Label, first_ranks: dict[str, set[int]]) -> Label:
    if label.local_rank < 0 or label.rank >= 0:
        return label._replace(local_rank=-1)
    candidates = first_ranks.get(label.host, set())
    first_rank = next(iter(candidates)) if len(candidates) == 1 else -1
    return (
        label._replace(rank=first_rank + label.local_rank, local_rank=-1)
        if first_rank >= 0
        else label
    )
