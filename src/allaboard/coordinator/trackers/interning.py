"""One copy of the values that thousands of hosts report alike."""

from __future__ import annotations

from sys import intern

import msgspec

from allaboard.blackbox.snapshot import BoxReading
from allaboard.facts import EACH_OWN, Declared


class InternPool:
    """Texts and clusters by their content: whatever came over a stream is a copy of its own each time."""

    def __init__(self) -> None:
        self._clusters: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
        self._environments: dict[frozenset[tuple[str, str]], tuple[int, dict[str, str]]] = {}
        """Facts that members have in common, to their number and their one copy."""

    def intern_facts(self, facts: dict[str, str]) -> tuple[dict[str, str], int]:
        """Return what a member runs with, and a number that is the same for all members that run with the
        same.

        Most do: facts that differ by nature (`EACH_OWN`) are few, and do not count.
        """
        own_facts = {name: facts[name] for name in EACH_OWN if name in facts}
        shared_items = frozenset(facts.items() - own_facts.items())
        environment = self._environments.get(shared_items)
        if environment is None:
            shared_facts = {intern(name): intern(value) for name, value in shared_items}
            environment = len(self._environments) + 1, shared_facts
            self._environments[shared_items] = environment
        return environment[1] | own_facts, environment[0]

    def intern_box(
        self, reading: BoxReading | None, previous: BoxReading | None
    ) -> BoxReading | None:
        """Return the reading of a black box; if it declares what the previous one did, with that very
        object."""
        if reading is None or reading.declared is None:
            return reading
        declared = reading.declared
        previously_declared = previous.declared if previous is not None else None
        if declared is previously_declared:
            return reading
        if previously_declared is not None and declared == previously_declared:
            declared = previously_declared
        else:
            declared = self.intern_declared(declared)
        return msgspec.structs.replace(reading, declared=declared)

    def intern_declared(self, declared: Declared) -> Declared:
        """Return what a member declared with shared texts: in a cluster of N tasks N members report N
        addresses each."""
        cluster = declared.cluster
        if cluster:
            cluster = self._clusters.setdefault(tuple(cluster.items()), cluster)
        return Declared(
            framework=intern(declared.framework),
            call=intern(declared.call),
            rank=declared.rank,
            world_size=declared.world_size,
            job=intern(declared.job),
            index=declared.index,
            place=intern(declared.place),
            cluster=cluster or NO_CLUSTER,
            backend=intern(declared.backend),
            origin=intern(declared.origin),
            local=declared.local,
            hold=declared.hold,
            bind=intern(declared.bind),
            interface=declared.interface,
            again=declared.again,
        )


NO_CLUSTER: dict[str, str] = {}
