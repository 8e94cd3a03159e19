"""Schedule of link probes: which host connects to which other hosts.

Up to ``MAX_ALL_PAIRS_HOSTS`` hosts, every host probes every other one, in both directions. Beyond that, host
i probes host ``i + 2**k`` for every k. So each host probes and is probed log2(N) times, any two halves of the
hosts are connected, and a bad host differs from a bad link: the host fails in all of its probes, the link in
one. Failed probes are repeated in the other direction, in a second round. All other pairs are never probed;
the neighbours in the ring always are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cache

MAX_ALL_PAIRS_HOSTS = 64
"""Number of hosts up to which every pair is probed."""


def probe_targets(index: int, hosts: int) -> tuple[int, ...]:
    """Return the indices of the hosts that host ``index`` of ``hosts`` probes."""
    if hosts <= MAX_ALL_PAIRS_HOSTS:
        return tuple(i for i in range(hosts) if i != index)
    return tuple([(index + stride) % hosts for stride in _ring_strides(hosts)])


@cache
def _ring_strides(hosts: int) -> tuple[int, ...]:
    # Powers of two: each host reaches any other over at most log2(N) probed links.
    return tuple(1 << k for k in range((hosts - 1).bit_length()))


MAX_REVERSE_PROBES = 8
"""Most probes of one host in the second round: enough to tell a bad host from a bad link."""


def reverse_probes(
    failed: Iterable[tuple[str, str]], tried: set[tuple[str, str]]
) -> dict[str, tuple[str, ...]]:
    """Return the targets that each host must probe in the second round.

    These are the failed (source, target) pairs in the other direction, unless that was already tried.
    """
    sources_by_host: dict[str, list[str]] = defaultdict(list)
    for source, target in failed:
        if (target, source) not in tried and len(sources_by_host[target]) < MAX_REVERSE_PROBES:
            sources_by_host[target].append(source)
    return {host: tuple(targets) for host, targets in sources_by_host.items() if targets}
