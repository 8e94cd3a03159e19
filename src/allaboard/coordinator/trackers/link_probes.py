"""Who was asked to try whom, and what came of it. Pure but for its memory."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator
from statistics import median

from allaboard.analysis.network.link_faults import DELAY, RATE
from allaboard.facts import Answer, Link, Usual
from allaboard.protocol.commands import ProbeLinks
from allaboard.protocol.events import LinksProbed

LISTED = 4096
"""Links up to which each is told of; beyond, they are told of together where nothing is the matter."""
SAMPLE = 4096
"""Links that a median is taken of, evenly out of all."""

Target = tuple[str, str]
"""A host's name, and the address where it is tried."""


class LinkProbes:
    """What hosts met when they tried each other, as few bytes as it takes: there are log2(N) links a host."""

    def __init__(self) -> None:
        self._asked: dict[int, tuple[Target, ...]] = {}
        self._worked: list[tuple[str, tuple[Target, ...], bytes]] = []
        self._failed: list[Link] = []
        self._known: tuple[tuple[Link, ...], Usual | None] | None = None

    def request_probes(self, agent: int, targets: tuple[Target, ...]) -> None:
        """This agent tries these, too."""
        self._asked[agent] = self._asked.get(agent, ()) + targets

    def request_second_round(self, wanted: dict[int, tuple[Target, ...]]) -> None:
        """A second round; who has not answered in the first one is not waited for."""
        self._asked = dict(wanted)

    @property
    def commands(self) -> Iterator[ProbeLinks]:
        """What each agent is to try."""
        return (ProbeLinks(agent=a, targets=t) for a, t in self._asked.items())

    @property
    def agents_asked(self) -> set[int]:
        return set(self._asked)

    def add_results(self, tried: LinksProbed, source: str | None, failed: Iterable[Link]) -> None:
        """What an agent met; ``source`` is its host, None where it has gone, ``failed`` are those of its
        links that count as such."""
        self._known = None
        self._failed += failed
        targets = self._asked.pop(tried.agent, ())
        if source is not None and targets and len(tried.worked) == 8 * len(targets):
            self._worked.append((source, targets, tried.worked))

    def clear_results(self) -> None:
        self._worked.clear()
        self._failed.clear()
        self._known = None

    @property
    def links(self) -> tuple[Link, ...]:
        """Each of them; none where they are many and all work well."""
        return self._found()[0]

    @property
    def usual_link(self) -> Usual | None:
        """All of them, where they are many and work well."""
        return self._found()[1]

    def _found(self) -> tuple[tuple[Link, ...], Usual | None]:
        if self._known is None:
            figures = array("f", b"".join([f for *_, f in self._worked]))
            if sys.byteorder == "big":
                figures.byteswap()
            usual = _usual(figures) if not self._failed and len(figures) > 2 * LISTED else None
            self._known = () if usual else (*self._failed, *self._listed(figures)), usual
        return self._known

    def _listed(self, figures: array[float]) -> Iterator[Link]:
        at = 0
        for source, targets, _ in self._worked:
            for host, address in targets:
                seconds, rate = figures[at], figures[at + 1]
                at += 2
                if rate > 0:
                    yield Link(
                        source=source,
                        target=host,
                        address=address,
                        answer=Answer.ABOARD,
                        seconds=seconds,
                        rate=rate,
                    )


def _usual(figures: array[float]) -> Usual | None:
    """None where one of them may be a fault, which is judged among all."""
    seconds, rates = figures[0::2], figures[1::2]
    if max(seconds) > DELAY or min(rates) < RATE:
        return None
    step = max(1, len(rates) // SAMPLE)
    return Usual(len(rates), median(seconds[::step]), median(rates[::step]))
