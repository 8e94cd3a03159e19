"""How the calls of a group differ, and the claims about it: which rank called what, and where."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum

from allaboard.analysis.collectives.collective_order import CallDifference, find_call_differences
from allaboard.analysis.collectives.implicit_call import destructor_advice
from allaboard.analysis.collectives.parted_places import PartedPlaces, find_parted_places
from allaboard.analysis.data.batch_comparison import DDP_BACKWARD
from allaboard.analysis.member_names import name_members
from allaboard.facts import Claim, Evidence, JobView, Signature
from allaboard.facts.collective_calls import NEW_GROUP, GroupKey, is_jitted
from allaboard.facts.rank_sets import name_ranks
from allaboard.facts.samples import member_with_calls, sample_job, sample_signature, stalled_job


class MismatchKind(StrEnum):
    """What differs between two calls; the first that applies counts."""

    OP = "operation"
    ROOT = "root"
    DTYPE = "dtype"
    REDUCE = "reduce operation"
    ELEMENTS = "number of elements"


_SAME_LENGTH = (
    "pass lists of the same length on all ranks ([None] * N where the root passes N objects)"
)


def mismatch_kind(difference: CallDifference) -> MismatchKind:
    """Return in what the outliers' call differs from the expected one."""
    outlier, expected = difference.outlier_call, difference.expected_call
    if (
        outlier.op != expected.op
        or outlier.op == NEW_GROUP
        or are_different_models(outlier, expected)
    ):
        return MismatchKind.OP
    # A root or type that differs implies other differences; the first in this order is the mistake.
    if outlier.root != expected.root:
        return MismatchKind.ROOT
    if outlier.dtype != expected.dtype:
        return MismatchKind.DTYPE
    return MismatchKind.REDUCE if outlier.reduce != expected.reduce else MismatchKind.ELEMENTS


def are_different_models(left_call: Signature, right_call: Signature) -> bool:
    """Return True if these are backward passes of two different DDP models.

    DDP itself checks at construction that a model has equally many parameters on all ranks, so a different
    number of elements means another model.
    """
    return (
        left_call.op == right_call.op == DDP_BACKWARD and left_call.elements != right_call.elements
    )


def find_mismatches(view: JobView, mismatch: MismatchKind) -> Iterator[CallDifference]:
    """Yield every difference of this kind that no rank still on its way can change."""
    return (d for d in find_call_differences(view) if d.complete and mismatch_kind(d) is mismatch)


def argument_mismatch_claims(
    view: JobView,
    mismatch: MismatchKind,
    value: Callable[[Signature], str],
    fix: str,
    *,
    noun: str = "",
) -> Iterator[Claim]:
    """Yield a claim for each call to which some ranks passed another ``value`` ("int32") than the others.

    ``noun`` follows the outliers' value in the sentence ("6 elements").
    """
    for difference in find_mismatches(view, mismatch):
        passed, expected = value(difference.outlier_call), value(difference.expected_call)
        if passed == expected and mismatch is MismatchKind.ELEMENTS:
            # A call of several tensors or objects: each is as large, and their number differs.
            outlier_did, expected = "passed a list of one length", "one of another length"
            yield mismatch_claim(view, difference, outlier_did, expected, _SAME_LENGTH)
            continue
        yield mismatch_claim(view, difference, f"passed {passed}{noun}", expected, fix)


def example_one_of_three(majority_call: Signature, outlier_call: Signature) -> JobView:
    """Return a view for rules' examples: the middle one of three ranks made the outlier call."""
    return sample_job(
        member_with_calls(0, majority_call),
        member_with_calls(1, outlier_call),
        member_with_calls(2, majority_call),
    )


def example_near_misses(majority_call: Signature, outlier_call: Signature) -> Mapping[str, JobView]:
    """Return views for rules' examples in which this difference does not exist, or is not yet known."""
    return {
        "all ranks make the same call": stalled_job(
            *(member_with_calls(r, majority_call) for r in range(3))
        ),
        "one rank calls a barrier, which HANG009 reports": example_one_of_three(
            majority_call, sample_signature("barrier", dtype="")
        ),
        "one rank has made one call fewer so far": sample_job(
            member_with_calls(0, majority_call, outlier_call),
            member_with_calls(1, majority_call),
            member_with_calls(2, majority_call, outlier_call),
        ),
    }


def mismatch_claim(
    view: JobView, difference: CallDifference, outlier_did: str, majority_did: str, fix: str
) -> Claim:
    """Return the certain claim that outliers did one thing ("passed int32") and the majority another."""
    if difference.majority_call is not None:
        subject, majority = name_members(difference.outliers), "the others"
    else:
        subject, majority = (
            _ranks_of_call(difference, s)
            for s in (difference.outlier_call, difference.expected_call)
        )
    operation = (
        "" if mismatch_kind(difference) is MismatchKind.OP else f" to {difference.outlier_call.op}"
    )
    verb = outlier_did.partition(" ")[0]
    parted = find_parted_places(difference)
    sites = _sites_of(parted) if parted is not None else mismatch_sites(difference)
    site = difference.outlier_call.site
    destructor = destructor_advice(site.function, site.file, site.line) if site is not None else ""
    return Claim(
        summary=f"{subject} {outlier_did}{operation} where {majority} {verb} {majority_did}",
        who=tuple(m.who for m in difference.outliers),
        evidence=mismatch_evidence(difference, view)
        + (_parted_evidence(view, difference, parted) if parted is not None else ()),
        fix=destructor or (f"{fix}: compare {sites}" if sites else fix),
        since=mismatch_since(difference),
        corrupts=True,
    )


def _parted_evidence(
    view: JobView, difference: CallDifference, parted: PartedPlaces
) -> tuple[Evidence, ...]:
    """Return from which lines the ranks made the calls before: there they took different ways."""
    ways = ", ".join(
        f"{_ranks_of_call(difference, call)} at {parted_call.site}"
        for call, parted_call in (
            (difference.outlier_call, parted.outlier_call),
            (difference.expected_call, parted.majority_call),
        )
    )
    return (
        Evidence(
            f"they parted {difference.number - parted.number} calls before, in {parted.majority_call.op}: "
            f"{ways}",
            f"call {parted.number} of {describe_group(view, difference.group)}",
        ),
    )


def _sites_of(parted: PartedPlaces) -> str:
    places = [parted.outlier_call.site, parted.majority_call.site]
    return " with ".join(f"{p.file}:{p.line}" for p in places if p is not None)


def _ranks_of_call(difference: CallDifference, call: Signature) -> str:
    return name_ranks([m.who.rank for m, s in difference.calls if s.required == call.required])


def mismatch_evidence(difference: CallDifference, view: JobView) -> tuple[Evidence, ...]:
    """Return which ranks called what: the evidence that every finding about an order of calls carries."""
    ranks_by_call: dict[str, list[int]] = defaultdict(list)
    for member, call in difference.calls:
        location = f" at {call.site}" if call.site is not None else ""
        ranks_by_call[f"{call}{location}"].append(member.who.rank)
    source = f"call {difference.number} of {describe_group(view, difference.group)}"
    return tuple(
        Evidence(f"{name_ranks(ranks)}: {description}", source)
        for description, ranks in sorted(ranks_by_call.items(), key=lambda kv: len(kv[1]))[:4]
    )


def describe_group(view: JobView, key: GroupKey) -> str:
    """Return how a person would point at a group: "the default group", or "the group of ranks 0 and 2"."""
    state = next((s for m in view.members for s in m.groups if s.key == key), None)
    if is_jitted(key):
        return "the jitted calls over several processes"
    if state is None or not state.ranks:
        return f"group {key[0]}"
    declared_members = sum(1 for m in view.members if m.declared is not None)
    if len(state.ranks) >= declared_members:
        return "the default group" if key[0] == "0" else f"group {key[0]}"
    return f"the group of {name_ranks(state.ranks)}"


def mismatch_sites(difference: CallDifference) -> str:
    """Return both places in the code as "a.py:3 with b.py:7", for the line that says what to do."""
    places = [
        s.site for s in (difference.outlier_call, difference.expected_call) if s.site is not None
    ]
    return " with ".join(dict.fromkeys(f"{p.file}:{p.line}" for p in places))


def mismatch_since(difference: CallDifference) -> float | None:
    """Return when the first of the outliers made that call (s); None if it is not their last call."""
    times = [
        s.since
        for m in difference.outliers
        for s in m.groups
        if s.key == difference.group and s.number == difference.number
    ]
    return min(times, default=None)
