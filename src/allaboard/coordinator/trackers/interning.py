"""One copy of what thousands of hosts say alike."""

from __future__ import annotations

from sys import intern

import msgspec

from allaboard.blackbox.snapshot import BoxReading
from allaboard.facts import EACH_OWN, Declared


class InternPool:
    """Texts and clusters by their content. What came over a stream is a copy of its own each time."""

    def __init__(self) -> None:
        self._clusters: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
        self._kinds: dict[frozenset[tuple[str, str]], tuple[int, dict[str, str]]] = {}

    def intern_facts(self, facts: dict[str, str]) -> tuple[dict[str, str], int]:
        """What a member runs with, and the number that all have who run with the same: most do, and what they
        differ in by right is little."""
        own = {name: facts[name] for name in EACH_OWN if name in facts}
        what = frozenset(facts.items() - own.items())
        known = self._kinds.get(what)
        if known is None:
            common = {intern(name): intern(value) for name, value in what}
            known = self._kinds[what] = len(self._kinds) + 1, common
        return known[1] | own, known[0]

    def intern_box(self, new: BoxReading | None, before: BoxReading | None) -> BoxReading | None:
        """A look into a box; who declared nothing new keeps what was declared."""
        if new is None or new.declared is None:
            return new
        told, known = new.declared, before.declared if before is not None else None
        if told is known:
            return new
        told = known if known is not None and told == known else self.intern_declared(told)
        return msgspec.structs.replace(new, declared=told)

    def intern_declared(self, told: Declared) -> Declared:
        """Of a cluster with N tasks N members tell N addresses each."""
        cluster = told.cluster
        if cluster:
            cluster = self._clusters.setdefault(tuple(cluster.items()), cluster)
        return Declared(
            framework=intern(told.framework),
            call=intern(told.call),
            rank=told.rank,
            world_size=told.world_size,
            job=intern(told.job),
            index=told.index,
            place=intern(told.place),
            cluster=cluster or NONE,
            backend=intern(told.backend),
            origin=intern(told.origin),
            local=told.local,
            hold=told.hold,
            bind=intern(told.bind),
            interface=told.interface,
            again=told.again,
        )


NONE: dict[str, str] = {}
