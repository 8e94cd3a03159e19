"""In what the calls of a group differ, and how that is told: who called what, and where."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum

from allaboard.analysis.collectives.collective_order import Difference, Key, differences
from allaboard.analysis.data.data_sharding import DDP
from allaboard.analysis.member_names import names
from allaboard.facts import Claim, Evidence, JobView, Signature
from allaboard.facts.collective_calls import NEW_GROUP
from allaboard.facts.samples import called, job, signature, stalled


class Kind(StrEnum):
    """What differs, the first that applies."""

    OP = "operation"
    ROOT = "root"
    DTYPE = "dtype"
    REDUCE = "reduce operation"
    ELEMENTS = "number of elements"


def kind(found: Difference) -> Kind:
    """In what the odd ones' call differs from the others'."""
    one, other = found.other, found.expected
    if one.op != other.op or one.op == NEW_GROUP or two_models(one, other):
        return Kind.OP
    if one.root != other.root:
        return Kind.ROOT
    if one.dtype != other.dtype:
        return Kind.DTYPE
    return Kind.REDUCE if one.reduce != other.reduce else Kind.ELEMENTS


def two_models(one: Signature, other: Signature) -> bool:
    """Whether these are backwards of two DDP models: DDP itself sees, when it is made, that a model has as
    many parameters on all ranks."""
    return one.op == other.op == DDP and one.elements != other.elements


def differing(view: JobView, wanted: Kind) -> Iterator[Difference]:
    """Every difference of this kind that no rank still on its way can change."""
    return (d for d in differences(view) if d.complete and kind(d) is wanted)


def passed(
    view: JobView, wanted: Kind, value: Callable[[Signature], str], fix: str, *, noun: str = ""
) -> Iterator[Claim]:
    """A claim for each call to which some ranks passed another ``value`` ("int32") than the others;
    ``noun`` follows the value of the odd ones ("6 elements")."""
    for found in differing(view, wanted):
        odd = f"passed {value(found.other)}{noun}"
        yield claim(view, found, odd, value(found.expected), fix)


def one_of_three(usual: Signature, odd: Signature) -> JobView:
    """A view for rules' examples: the middle one of three ranks called ``odd``."""
    return job(called(0, usual), called(1, odd), called(2, usual))


def agreeing(usual: Signature, odd: Signature) -> Mapping[str, JobView]:
    """Views for rules' examples in which this difference is not there, or not yet known."""
    return {
        "the same": stalled(*(called(r, usual) for r in range(3))),
        "another operation": one_of_three(usual, signature("barrier", dtype="")),
        "one is behind": job(called(0, usual, odd), called(1, usual), called(2, usual, odd)),
    }


def claim(view: JobView, found: Difference, did: str, others: str, fix: str) -> Claim:
    """The certain claim that the odd ones ``did`` something ("passed int32") where the others did
    something else."""
    if found.usual is not None:
        subject, rest = names(found.odd), "the others"
    else:
        subject, rest = (f"rank {_ranks(found, s)}" for s in (found.other, found.expected))
    inside = "" if kind(found) is Kind.OP else f" to {found.other.op}"
    verb = did.partition(" ")[0]
    return Claim(
        summary=f"{subject} {did}{inside} where {rest} {verb} {others}",
        who=tuple(m.who for m in found.odd),
        evidence=told(found, view),
        fix=f"{fix}: compare {sites(found)}" if sites(found) else fix,
        since=since(found),
        corrupts=True,
    )


def _ranks(found: Difference, call: Signature) -> str:
    ranks = [m.who.rank for m, s in found.calls if s.required == call.required]
    return ", ".join(map(str, ranks[:16]))


def told(found: Difference, view: JobView) -> tuple[Evidence, ...]:
    """Who called what: the evidence that every finding about an order carries."""
    who: dict[str, list[int]] = defaultdict(list)
    for member, call in found.calls:
        at = f" at {call.site}" if call.site is not None else ""
        who[f"{call}{at}"].append(member.who.rank)
    where = f"call {found.number} of {group_name(view, found.group)}"
    return tuple(
        Evidence(f"rank {', '.join(map(str, ranks[:16]))}: {what}", where)
        for what, ranks in sorted(who.items(), key=lambda kv: len(kv[1]))[:4]
    )


def group_name(view: JobView, key: Key) -> str:
    """A group as a person would point at it: by its ranks."""
    state = next((s for m in view.members for s in m.groups if s.key == key), None)
    if state is None or not state.ranks:
        return f"group {key[0]}"
    everybody = sum(1 for m in view.members if m.declared is not None)
    if len(state.ranks) >= everybody:
        return "the default group" if key[0] == "0" else f"group {key[0]}"
    return f"the group of ranks {', '.join(map(str, state.ranks[:16]))}"


def sites(found: Difference) -> str:
    """Both places, for the line that says what to do."""
    places = [s.site for s in (found.other, found.expected) if s.site is not None]
    return " with ".join(dict.fromkeys(f"{p.file}:{p.line}" for p in places))


def since(found: Difference) -> float | None:
    """When the first of the odd ones made that call (s), where it is its last."""
    times = [
        s.since
        for m in found.odd
        for s in m.groups
        if s.key == found.group and s.number == found.number
    ]
    return min(times, default=None)
