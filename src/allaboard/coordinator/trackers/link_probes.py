"""Which agent was asked to probe which hosts, and what came of it. Pure but for its memory."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator
from statistics import median

import msgspec

from allaboard.analysis.network.link_faults import FAST_LINK_BYTES_PER_S, NEAR_LINK_RTT_S
from allaboard.facts import Answer, Link, Usual
from allaboard.protocol.commands import ProbeLinks
from allaboard.protocol.events import LinksProbed

MAX_LISTED_LINKS = 4096
"""Number of links up to which each one is listed; more are summed up if nothing is the matter with them."""
MEDIAN_SAMPLE = 4096
"""Links, evenly out of all, of which a median is taken."""

Target = tuple[str, str]
"""A host's name, and the address where it is probed."""


class LinkProbes:
    """The results of the probes in as few bytes as it takes: there are log2(N) links a host."""

    def __init__(self) -> None:
        self._pending: dict[int, tuple[Target, ...]] = {}
        """Agent to the targets that it was asked for and has not answered."""
        self._working: list[tuple[str, tuple[Target, ...], bytes]] = []
        """Source host, its targets, and the figures of its answer."""
        self._failed: list[Link] = []
        self._summary: tuple[tuple[Link, ...], Usual | None] | None = None
        """The links and their summary, until there is another answer."""

    def request_probes(self, agent: int, targets: tuple[Target, ...]) -> None:
        """Add targets that this agent is to probe."""
        self._pending[agent] = self._pending.get(agent, ()) + targets

    def request_second_round(self, targets_by_agent: dict[int, tuple[Target, ...]]) -> None:
        """Begin a second round; agents that have not answered in the first one are not waited for."""
        self._pending = dict(targets_by_agent)

    @property
    def commands(self) -> Iterator[ProbeLinks]:
        """The requests to all agents that have not answered."""
        return (ProbeLinks(agent=a, targets=t) for a, t in self._pending.items())

    @property
    def agents_asked(self) -> set[int]:
        """The agents that have not answered yet."""
        return set(self._pending)

    def accept_links(self, agent: int, source: str, links: Iterable[Link]) -> list[Link]:
        """Return those of these links that this agent was asked for and has not answered, each once, as
        links of its own host ``source``, "" if that is not known."""
        asked = set(self._pending.get(agent, ()))
        accepted: list[Link] = []
        for link in links:
            target = link.target, link.address
            if target in asked:
                asked.discard(target)
                accepted.append(
                    link if link.source == source else msgspec.structs.replace(link, source=source)
                )
        return accepted

    def add_results(self, event: LinksProbed, source: str | None, failed: Iterable[Link]) -> None:
        """Take in what an agent met. ``source`` is its host, None if it has disconnected; ``failed`` are
        those of its links that count as failed."""
        self._summary = None
        self._failed += failed
        targets = self._pending.pop(event.agent, ())
        # Two float32 for each target. It came from another host: of any other length it is not
        # used, as the figures could not be told apart.
        if source is not None and targets and len(event.worked) == 8 * len(targets):
            self._working.append((source, targets, event.worked))

    def clear_results(self) -> None:
        """Forget all results, as another host leads now."""
        self._working.clear()
        self._failed.clear()
        self._summary = None

    @property
    def links(self) -> tuple[Link, ...]:
        """Each link; none if there are many and all work well."""
        return self._summarize()[0]

    @property
    def usual_link(self) -> Usual | None:
        """All links as one, if there are many and all work well."""
        return self._summarize()[1]

    def _summarize(self) -> tuple[tuple[Link, ...], Usual | None]:
        if self._summary is None:
            figures = array("f", b"".join([f for *_, f in self._working]))
            if sys.byteorder == "big":
                figures.byteswap()  # the wire has little-endian floats
            is_large = len(figures) > 2 * MAX_LISTED_LINKS
            usual_link = _usual_link(figures) if not self._failed and is_large else None
            self._summary = (
                () if usual_link else (*self._failed, *self._working_links(figures)),
                usual_link,
            )
        return self._summary

    def _working_links(self, figures: array[float]) -> Iterator[Link]:
        index = 0
        for source, targets, _ in self._working:
            for host, address in targets:
                seconds, rate = figures[index], figures[index + 1]
                index += 2
                if rate > 0:  # 0 stands for a link that failed
                    yield Link(
                        source=source,
                        target=host,
                        address=address,
                        answer=Answer.ABOARD,
                        seconds=seconds,
                        rate=rate,
                    )


def _usual_link(figures: array[float]) -> Usual | None:
    """Return count and medians of all links; None if one of them may be faulty, which is judged among all."""
    seconds, rates = figures[0::2], figures[1::2]
    if max(seconds) > NEAR_LINK_RTT_S or min(rates) < FAST_LINK_BYTES_PER_S:
        return None
    step = max(1, len(rates) // MEDIAN_SAMPLE)
    return Usual(len(rates), median(seconds[::step]), median(rates[::step]))
