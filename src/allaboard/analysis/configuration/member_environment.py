"""What the members of a job ran with, by name, and in what they differed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from allaboard.facts import EACH_OWN, Member
from allaboard.facts.rank_sets import describe_ranks, format_ranks

MAX_VALUES = 8
"""Different values of one fact that are listed; further ones are counted."""


class EnvironmentFact(msgspec.Struct, frozen=True, kw_only=True):
    """One version, variable or limit, and the values that the members had."""

    name: str
    """Its name: "version torch", "variable NCCL_DEBUG", "limit open files"."""
    value: str
    """The value that most members had."""
    deviations: tuple[tuple[str, str], ...] = ()
    """Each other value, and whose it was ("ranks 2-3")."""
    values_left_out: int = 0
    """Other values that are too many to be listed."""


def environment_facts(members: Iterable[Member]) -> tuple[EnvironmentFact, ...]:
    """Return what is known of the members' environments; those in which they differ first."""
    with_facts = [(m, _facts(m)) for m in members if not m.has_no_part]
    with_facts = [(m, facts) for m, facts in with_facts if facts]
    names = sorted({name for _, facts in with_facts for name in facts} - EACH_OWN)
    result = []
    for name in names:
        by_value: dict[str, list[Member]] = defaultdict(list)
        for member, facts in with_facts:
            by_value[facts.get(name, "")].append(member)
        result.append(_fact(name, by_value))
    return tuple(sorted(result, key=lambda fact: not fact.deviations))


def _facts(member: Member) -> dict[str, str]:
    """Return the facts of a member; on a single host only the versions that its probe noted are known."""
    noted = {f"version {k}": v for k, v in member.notes.items() if _is_version(v)}
    return noted | member.facts


def _is_version(text: str) -> bool:
    return text[:1].isdecimal() and "." in text


def _fact(name: str, by_value: dict[str, list[Member]]) -> EnvironmentFact:
    ordered = sorted(by_value, key=lambda value: -len(by_value[value]))
    other_values = ordered[1 : 1 + MAX_VALUES]
    return EnvironmentFact(
        name=name,
        value=ordered[0],
        deviations=tuple((value, _whose(by_value[value])) for value in other_values),
        values_left_out=max(0, len(ordered) - 1 - len(other_values)),
    )


def _whose(members: list[Member]) -> str:
    ranks = [m.who.rank for m in members if m.who.rank >= 0]
    unranked = tuple(m.who.name for m in members if m.who.rank < 0)[:MAX_VALUES]
    return describe_ranks(format_ranks(ranks), len(ranks), unranked)
