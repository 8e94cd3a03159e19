"""Who tries whom. Pure.

Up to ``ALL_PAIRS`` hosts everybody tries everybody, both ways. Beyond that host i tries host
``i + 2**k`` for every k: each host tries and is tried log2(N) times, all hosts are connected in any two
halves, and a bad host is told from a bad link: it fails in all of its trials, the link in one. What failed is
then tried the other way round, in one more round. A pair that is not among those is not tried at all: of
all pairs that is the most where N hosts try log2(N) each, and the ring's neighbours are always among them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cache

MAX_ALL_PAIRS_HOSTS = 64


def probe_targets(index: int, hosts: int) -> tuple[int, ...]:
    """The hosts that host ``index`` of ``hosts`` tries."""
    if hosts <= MAX_ALL_PAIRS_HOSTS:
        return tuple(i for i in range(hosts) if i != index)
    return tuple([(index + stride) % hosts for stride in _strides(hosts)])


@cache
def _strides(hosts: int) -> tuple[int, ...]:
    return tuple(1 << k for k in range((hosts - 1).bit_length()))


MAX_REVERSE_PROBES = 8
"""Trials of one host in the second round, at the most: enough to tell a host from a link."""


def reverse_probes(
    failed: Iterable[tuple[str, str]], tried: set[tuple[str, str]]
) -> dict[str, tuple[str, ...]]:
    """What is to be tried once more, by the host that is to try it: every failed (source, target) the other
    way round, where that has not been tried."""
    sources_by_host: dict[str, list[str]] = defaultdict(list)
    for source, target in failed:
        if (target, source) not in tried and len(sources_by_host[target]) < MAX_REVERSE_PROBES:
            sources_by_host[target].append(source)
    return {host: tuple(targets) for host, targets in sources_by_host.items() if targets}
