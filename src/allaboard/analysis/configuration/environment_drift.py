"""What members run with, side by side: the majority's value, and who differs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

import msgspec

from allaboard.analysis.network.link_faults import four, on_host
from allaboard.analysis.roll_call.roll_call import RollCall, roll_calls
from allaboard.facts import EACH_OWN, JobView, Member
from allaboard.facts.memo import cached_per_view


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One fact by ``name``: what most have, and who has what instead ("" where it is not there)."""

    name: str
    usual: str
    others: tuple[tuple[str, tuple[Member, ...]], ...]

    @property
    def members(self) -> tuple[Member, ...]:
        return tuple(m for _, members in self.others for m in members)

    @property
    def told(self) -> str:
        """Who differs, in words: ``h2 has 2.1.0 (the others 2.0.1)``."""
        parts = [
            f"{', '.join(_name(m) for m in members[:4])} has {value or 'none'}"
            for value, members in self.others
        ]
        return f"{'; '.join(parts)}, the others {self.usual or 'none'}"


def differences(
    view: JobView, wanted: Callable[[str], bool]
) -> Iterator[tuple[RollCall, Difference]]:
    """Of complete roll calls over several hosts: every wanted fact that is not the same for all."""
    for roll, known, names in _compared(view):
        for name in filter(wanted, names):
            by_value: dict[str, list[Member]] = defaultdict(list)
            for member in known:
                by_value[member.facts.get(name, "")].append(member)
            yield roll, _difference(name, by_value)


@cached_per_view
def _compared(view: JobView) -> tuple[tuple[RollCall, tuple[Member, ...], list[str]], ...]:
    """Of each such roll call who is compared, and the names of what is not the same for all."""
    found = []
    for roll in roll_calls(view) if view.joined and view.leads else ():
        known = tuple(m for m in roll.held if m.facts)
        if not roll.is_complete or len(known) < len(roll.present):
            continue
        kinds = {m.alike: m.facts for m in known}
        kinds.pop(0, None)
        facts = [*kinds.values(), *(m.facts for m in known if not m.alike)]
        names = sorted(set[str]().union(*facts) - EACH_OWN) if len(facts) > 1 else []
        found.append((roll, known, [n for n in names if len({f.get(n, "") for f in facts}) > 1]))
    return tuple(found)


def of_the_same(
    found: Iterator[tuple[RollCall, Difference]], weight: Callable[[str], int]
) -> Iterator[tuple[Difference, ...]]:
    """Differences together that are of the same members, which one claim must tell; those whose name weighs
    the least come first."""
    groups: dict[frozenset[int], list[Difference]] = defaultdict(list)
    for _, one in found:
        groups[frozenset(m.key for m in one.members)].append(one)
    for group in groups.values():
        yield tuple(sorted(group, key=lambda d: (weight(d.name), d.name)))


def _difference(name: str, by_value: dict[str, list[Member]]) -> Difference:
    """The majority is usual; where there is none, the value of the lowest rank."""
    usual = max(by_value, key=lambda v: (len(by_value[v]), -min(m.who.rank for m in by_value[v])))
    others = tuple((v, tuple(ms)) for v, ms in by_value.items() if v != usual)
    return Difference(name=name, usual=usual, others=others)


def _name(member: Member) -> str:
    return f"{member.who.host} (rank {member.who.rank})" if member.who.host else str(member.who)


def side_by_side(name: str, *values: str, **more: tuple[str, ...]) -> JobView:
    """A view for rules' examples: four hosts whose members have these values of one fact, and ``more`` by
    name, whose _ stand for spaces."""
    table = {name: values} | {n.replace("_", " ", 1): told for n, told in more.items()}
    members = tuple(
        on_host(i, facts={"count CPUs": "8"} | {n: told[i] for n, told in table.items() if told[i]})
        for i in range(len(values))
    )
    return msgspec.structs.replace(four(), members=members)
