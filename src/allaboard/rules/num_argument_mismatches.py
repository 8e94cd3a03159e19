"""Arguments that differ between the ranks of one collective: each rule compares one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from allaboard.analysis.collectives.collective_mismatch import (
    MismatchKind,
    argument_mismatch_claims,
    example_near_misses,
    example_one_of_three,
)
from allaboard.contracts import Relations, Rule
from allaboard.facts import Claim, JobView, Signature
from allaboard.facts.samples import sample_signature

_USUAL_CALL = sample_signature()
_NO_VIEWS: Mapping[str, JobView] = MappingProxyType({})


def _rule(
    page: str,
    mismatch: MismatchKind,
    value: Callable[[Signature], str],
    fix: str,
    case: str,
    outlier_call: Signature,
    summary: str,
    drill: str,
    noun: str = "",
    silent_on: Mapping[str, JobView] = _NO_VIEWS,
    fires_on: Mapping[str, tuple[JobView, str]] = MappingProxyType({}),
) -> Rule[JobView]:
    """Return the rule that reports a collective to which some ranks passed another ``value``.

    ``noun`` follows the value in the sentence ("6 elements"). In the example, one rank of three makes the
    ``outlier_call``. ``fires_on`` and ``silent_on`` add to the examples that all these rules have.
    """

    def check(view: JobView) -> Iterator[Claim]:
        return argument_mismatch_claims(view, mismatch, value, fix, noun=noun)

    return Rule(
        page=page,
        reads=JobView,
        check=check,
        needs=("traces",),
        fires_on={case: (example_one_of_three(_USUAL_CALL, outlier_call), summary), **fires_on},
        silent_on={**example_near_misses(_USUAL_CALL, outlier_call), **silent_on},
        relations=Relations(explains=("LOG003",)),
        drill=(drill,),
    )


RULES = {
    "num001_other_dtype": _rule(
        page="""Ranks passed tensors of different dtypes to one collective.

## Why it matters
A collective moves bytes. PyTorch on gloo adds the bits of an int32 to those of a float32 and continues: the
numbers are wrong, no rank hangs, and the job exits with code 0. If the dtypes differ in width, a rank that is
not at fault aborts.

## What to do
Cast before the call, on every rank: `tensor.to(torch.float32)`. Look for a metric that is an integer on one
rank (an empty shard: `0` instead of `0.0`), or for mixed precision that is turned off on one rank.
""",
        mismatch=MismatchKind.DTYPE,
        value=lambda call: call.dtype,
        fix="cast to the same dtype on all ranks",
        case="one of three ranks passes int32, the others float32",
        outlier_call=sample_signature(dtype="int32"),
        summary="worker 1 passed int32 to all_reduce where the others passed float32",
        drill="other-dtype",
    ),
    "num002_other_elements": _rule(
        page="""Ranks passed tensors with different numbers of elements to one collective.

Only operations that require equal numbers are compared: all_reduce, reduce, broadcast, all_gather into one
tensor, reduce_scatter of one tensor. Gathered, scattered or exchanged tensors may be uneven.

## Why it matters
Some ranks return wrong values, others wait for bytes that never arrive.

## What to do
Pad to one length, or gather with the real sizes (`all_gather` the lengths first). If the last batch is
smaller on one rank, use `drop_last=True`.
""",
        mismatch=MismatchKind.ELEMENTS,
        value=lambda call: str(call.elements),
        fix="pass the same number of elements on all ranks",
        case="one of three ranks passes 6 elements, the others 4",
        outlier_call=sample_signature(elements=6, shape="6"),
        summary="worker 1 passed 6 elements to all_reduce where the others passed 4",
        drill="other-elements",
        noun=" elements",
        fires_on={
            "one rank passes a shorter list of objects": (
                example_one_of_three(
                    Signature("broadcast_object_list", required=7, root=0),
                    Signature("broadcast_object_list", required=8, root=0),
                ),
                "worker 1 passed a list of one length to broadcast_object_list where the others passed one "
                "of another length",
            )
        },
        silent_on={
            "one rank runs the backward of another DDP model, which HANG009 reports": example_one_of_three(
                sample_signature("DDP backward", elements=6, shape="6"),
                sample_signature("DDP backward"),
            )
        },
    ),
    "num003_other_reduce": _rule(
        page="""Ranks passed different reduce operations to one collective.

## Why it matters
Each rank reduces in its own way: parts of the result are sums, parts are maxima. No rank hangs, and the job
exits with code 0 and wrong numbers.

## What to do
Pass the same `op=` on all ranks.
""",
        mismatch=MismatchKind.REDUCE,
        value=lambda call: call.reduce,
        fix="pass the same reduce operation on all ranks",
        case="one of three ranks reduces with max, the others with sum",
        outlier_call=sample_signature(reduce="max"),
        summary="worker 1 passed max to all_reduce where the others passed sum",
        drill="other-reduce",
    ),
}
