"""Where the pods of a manifest meet, and which workloads meet at one place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from allaboard.facts import ManifestFacts, Role, Value, Workload
from allaboard.facts.address import parse_address

SINGLE_TEMPLATE_KINDS = frozenset(("Pod", "Job", "StatefulSet", "Deployment", "ReplicaSet"))
"""Kinds that an operator does not number: one job may consist of several of them."""
_PLACE_FLAGS = ("--rdzv_endpoint", "--rdzv-endpoint", "--master_addr", "--master-addr")
_PLACE_VARIABLES = (
    "PET_RDZV_ENDPOINT",
    "PET_MASTER_ADDR",
    "MASTER_ADDR",
    "JAX_COORDINATOR_ADDRESS",
)


def flag_value(command: Sequence[Value], *flags: str) -> Value | None:
    """Return the value of the first of these flags in a command; None if it has none."""
    for position, argument in enumerate(command):
        name, equals, text = argument.text.partition("=")
        if name not in flags:
            continue
        if equals:
            return Value(text, argument.origin)
        if position + 1 < len(command):
            return command[position + 1]
    return None


def meeting_places(role: Role) -> Iterator[Value]:
    """Yield the addresses at which the pods of a role meet, as its commands and variables state them."""
    for command in role.commands or (role.command,):
        value = flag_value(command, *_PLACE_FLAGS)
        if value is not None:
            yield value
    yield from (role.env[name] for name in _PLACE_VARIABLES if name in role.env)


class PodMeetings:
    """Which workloads of a manifest meet at one place. Each is looked at once: there may be thousands."""

    def __init__(self, facts: ManifestFacts) -> None:
        self._at_place: dict[tuple[str, str], list[int]] = {}
        self._workloads = facts.workloads
        for number, workload in enumerate(facts.workloads):
            if workload.kind in SINGLE_TEMPLATE_KINDS:
                for place in _places(workload):
                    self._at_place.setdefault((workload.namespace, place), []).append(number)
        self._counts: dict[tuple[str, frozenset[str]], int | None] = {}

    def count_pods(self, workload: Workload) -> int | None:
        """Return how many pods meet where this workload's do, those of other workloads included; None if no
        other workload does, or if their number is not known."""
        places = _places(workload)
        if workload.kind not in SINGLE_TEMPLATE_KINDS or not places:
            return None
        key = workload.namespace, places
        if key not in self._counts:
            self._counts[key] = self._count(*key)
        return self._counts[key]

    def _count(self, namespace: str, places: frozenset[str]) -> int | None:
        numbers = {n for place in places for n in self._at_place.get((namespace, place), ())}
        if len(numbers) < 2:
            return None
        total = 0
        for number in numbers:
            for role in self._workloads[number].roles:
                if role.replicas.integer is None:
                    return None
                total += role.replicas.integer
        return total


def _places(workload: Workload) -> frozenset[str]:
    return frozenset(place_key(v.text) for r in workload.roles for v in meeting_places(r))


def place_key(address: str) -> str:
    """Return the same text for addresses of one host: without port, and of a name without its domain."""
    host = parse_address(address).host
    is_name = any(c.isalpha() for c in host) and ":" not in host
    return host.partition(".")[0] if is_name else host
