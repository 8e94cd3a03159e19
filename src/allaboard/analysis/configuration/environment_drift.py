"""Facts of members' environments compared: the majority's value, and the members that differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

import msgspec

from allaboard.analysis.network.link_faults import example_four_hosts, example_host_member
from allaboard.analysis.roll_call.roll_call import RollCall, find_roll_calls
from allaboard.facts import EACH_OWN, JobView, Member
from allaboard.facts.memo import cached_per_view


class FactDifference(msgspec.Struct, frozen=True, kw_only=True):
    """One fact in which members differ."""

    name: str
    """Name of the fact."""
    majority_value: str
    """Value that most members have; "" if most have none."""
    deviations: tuple[tuple[str, tuple[Member, ...]], ...]
    """The other values ("" for none), each with its members."""

    @property
    def members(self) -> tuple[Member, ...]:
        """Return all members that differ from the majority."""
        return tuple(m for _, members in self.deviations for m in members)

    @property
    def description(self) -> str:
        """Return who differs: "h2 has 2.1.0, the others 2.0.1"."""
        parts = [
            f"{', '.join(_host_and_rank(m) for m in members[:4])} has {value or 'none'}"
            for value, members in self.deviations
        ]
        return f"{'; '.join(parts)}, the others {self.majority_value or 'none'}"


def find_fact_differences(
    view: JobView, is_wanted: Callable[[str], bool]
) -> Iterator[tuple[RollCall, FactDifference]]:
    """Yield every wanted fact that differs between the members of a complete roll call over several hosts."""
    for roll, compared, names in _compared_members(view):
        for name in filter(is_wanted, names):
            by_value: dict[str, list[Member]] = defaultdict(list)
            for member in compared:
                by_value[member.facts.get(name, "")].append(member)
            yield roll, _make_difference(name, by_value)


@cached_per_view
def _compared_members(view: JobView) -> tuple[tuple[RollCall, tuple[Member, ...], list[str]], ...]:
    """Return each such roll call, the members compared, and the names of the facts in which they differ."""
    comparisons = []
    for roll in find_roll_calls(view) if view.joined and view.leads else ():
        compared = tuple(m for m in roll.held_members if m.facts)
        if not roll.is_complete or len(compared) < len(roll.present):
            continue
        # Members with the same number `alike` have equal facts: of thousands of members few sets are left
        # to compare. 0 stands for an unknown number.
        fact_sets = {m.alike: m.facts for m in compared}
        fact_sets.pop(0, None)
        facts = [*fact_sets.values(), *(m.facts for m in compared if not m.alike)]
        names = sorted(set[str]().union(*facts) - EACH_OWN) if len(facts) > 1 else []
        comparisons.append(
            (roll, compared, [n for n in names if len({f.get(n, "") for f in facts}) > 1])
        )
    return tuple(comparisons)


def group_by_members(
    differences: Iterator[tuple[RollCall, FactDifference]], weight: Callable[[str], int]
) -> Iterator[tuple[FactDifference, ...]]:
    """Yield the differences of the same members together, which one claim must report, the lightest first."""
    groups: dict[frozenset[int], list[FactDifference]] = defaultdict(list)
    for _, difference in differences:
        groups[frozenset(m.key for m in difference.members)].append(difference)
    for group in groups.values():
        yield tuple(sorted(group, key=lambda d: (weight(d.name), d.name)))


def _make_difference(name: str, by_value: dict[str, list[Member]]) -> FactDifference:
    """Return the difference from the most frequent value; of several, from that of the lowest rank."""
    majority_value = max(
        by_value, key=lambda v: (len(by_value[v]), -min(m.who.rank for m in by_value[v]))
    )
    deviations = tuple((v, tuple(ms)) for v, ms in by_value.items() if v != majority_value)
    return FactDifference(name=name, majority_value=majority_value, deviations=deviations)


def _host_and_rank(member: Member) -> str:
    return f"{member.who.host} (rank {member.who.rank})" if member.who.host else str(member.who)


def example_side_by_side(name: str, *values: str, **more: tuple[str, ...]) -> JobView:
    """Return a view for rules' examples: four hosts whose members have these values of one fact.

    ``more`` has the values of further facts by name; the first _ of a name stands for a space.
    """
    table = {name: values} | {
        n.replace("_", " ", 1): fact_values for n, fact_values in more.items()
    }
    members = tuple(
        example_host_member(
            i,
            facts={"count CPUs": "8"}
            | {n: fact_values[i] for n, fact_values in table.items() if fact_values[i]},
        )
        for i in range(len(values))
    )
    return msgspec.structs.replace(example_four_hosts(), members=members)
