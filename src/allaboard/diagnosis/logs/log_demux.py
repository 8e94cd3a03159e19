"""One file into what each process wrote into it, so that a witness reads plain lines of one. Pure."""

from __future__ import annotations

import re
from collections import defaultdict

import msgspec

from allaboard.facts import Exhibit
from allaboard.formats.dumps.local_ranks import assign_ranks
from allaboard.formats.dumps.log_prefixes import NO_LABEL, Label, split_labels

BINARY = 4096
"""Bytes of the beginning in which a zero tells that it is no text."""
MOST = 20_000
"""Processes of one file; more names than that name none."""

OF_TORCHRUN = re.compile(r"/(\d{1,7})/(?:stdout|stderr)\.log$")
"""``torchrun --log-dir``: a file for each local rank."""
_OWN = re.compile(r"^\[rank(\d{1,7})\]:", re.MULTILINE)


def owned(exhibit: Exhibit) -> Exhibit:
    """With the rank that its own lines tell, where its name or its folder tells another number: that on its
    node, or that of the node. Of a node with several ranks the lines that name none are nobody's."""
    if exhibit.rank < 0:
        return exhibit
    told = {int(r) for r in _OWN.findall(exhibit.text)}
    launched = OF_TORCHRUN.search(exhibit.name)
    if not told and launched is not None and int(launched[1]) == exhibit.rank:
        return msgspec.structs.replace(exhibit, local=exhibit.rank)
    if not told or told == {exhibit.rank} or (len(told) > 1 and launched is not None):
        return exhibit
    return msgspec.structs.replace(exhibit, rank=told.pop() if len(told) == 1 else -1)


def streams(exhibit: Exhibit) -> tuple[Exhibit, ...]:
    """The exhibit as it is where no line of it has a prefix; else a part for each process that is named,
    and one for the lines that name nobody, as a launcher's own."""
    if b"\0" in exhibit.data[:BINARY]:
        return (exhibit,)
    text = exhibit.text
    read = assign_ranks(split_labels(text))
    labels = {label for label, _ in read}
    if labels == {NO_LABEL} or len(labels) > MOST:
        plain = "\n".join(line for _, line in read)
        same = plain == text or len(labels) > MOST
        return (exhibit if same else msgspec.structs.replace(exhibit, data=plain.encode()),)
    whose = _processes(labels)
    # What a node's launcher wrote itself is of none of its ranks, whatever the file is called.
    own = exhibit.rank if all(label.local_rank < 0 for label in labels) else -1
    parts: dict[Label, tuple[list[str], list[int]]] = {}
    for number, (label, line) in enumerate(read, 1):
        lines, numbers = parts.setdefault(whose[label], ([], []))
        lines.append(line)
        numbers.append(number)
    return tuple(
        msgspec.structs.replace(
            exhibit,
            data="\n".join(lines).encode(),
            rank=label.rank if label.rank >= 0 else own,
            host=label.host,
            pid=label.pid,
            numbers=tuple(numbers),
            labelled=label.by_launcher,
            local=label.local_rank,
        )
        for label, (lines, numbers) in parts.items()
        if any(lines)
    )


def _processes(labels: set[Label]) -> dict[Label, Label]:
    """Labels that name one process are one: a rank has one, and a pod or a pid of which only one rank
    is known is that rank's."""
    inside: dict[tuple[str, int], set[int]] = defaultdict(set)
    for one in labels:
        if one.rank >= 0:
            inside[one.host, one.pid].add(one.rank)
    launched = {one.rank for one in labels if one.by_launcher}
    named: dict[Label, Label] = {}
    for one in labels:
        ranks = inside[one.host, one.pid] if one.host or one.pid else set()
        alone = one.rank < 0 and one.local_rank < 0 and len(ranks) == 1
        rank = next(iter(ranks)) if alone else one.rank
        launcher = one.by_launcher or (rank >= 0 and rank in launched)
        if rank >= 0:
            # The same rank of another host or pid is the one that was started anew.
            named[one] = Label(rank, by_launcher=launcher, local_rank=one.local_rank)
        else:
            named[one] = one
    return named
