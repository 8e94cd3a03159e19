"""Who tries whom. Pure.

Up to ``ALL_PAIRS`` hosts everybody tries everybody, both ways. Beyond that host i tries host
``i + 2**k`` for every k: each host tries and is tried log2(N) times, all hosts are connected in any two
halves, and a bad host is told from a bad link: it fails in most of its trials, the link in one.
"""

from __future__ import annotations

ALL_PAIRS = 64


def targets(index: int, hosts: int) -> tuple[int, ...]:
    """The hosts that host ``index`` of ``hosts`` tries."""
    if hosts <= ALL_PAIRS:
        return tuple(i for i in range(hosts) if i != index)
    steps = []
    step = 1
    while step < hosts:
        steps.append((index + step) % hosts)
        step *= 2
    return tuple(steps)
