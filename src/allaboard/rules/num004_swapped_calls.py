"""Some ranks made two similar calls in the opposite order.

Both calls have the same operation, shape and dtype, so the backend cannot tell them apart: it adds one rank's
first tensor to the others' second. The source lines show it: some ranks called at one line and then at the
other, the rest in the opposite order. After eight repetitions in one order the finding is certain; if the
order was never consistent, it is likely.

## Why it matters
Both sums are silently wrong on every rank: no rank hangs, no size differs, and the job exits with code 0.

## What to do
Look at the two lines, and at what determines which comes first: a branch on something that differs between
ranks, the order of a set or dict, a callback or hook that fires earlier on one rank. Make the order the same
on all ranks.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.collectives.collective_mismatch import describe_group
from allaboard.analysis.collectives.swapped_collectives import Swap, find_swaps
from allaboard.analysis.member_names import name_by_rank, name_members
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Frame, JobView, Signature
from allaboard.facts.samples import member_with_calls, sample_job, sample_signature


def check(view: JobView) -> Iterator[Claim]:
    for swap in find_swaps(view):
        yield _claim(view, swap)


def _claim(view: JobView, swap: Swap) -> Claim:
    first_site, second_site = swap.first.site, swap.second.site
    calls = f"calls {swap.number} and {swap.second_number} of {describe_group(view, swap.group)}"
    consistency = (
        f"{swap.repeats} times in the same order before"
        if swap.repeats
        else "never in the same order on all ranks"
    )
    fix = (
        (f"; compare {_file_and_line(first_site)} with {_file_and_line(second_site)}")
        if first_site and second_site
        else ""
    )
    return Claim(
        summary=f"{name_members(swap.outliers)} swapped two similar calls of {swap.first.op}: "
        f"{second_site} before {first_site}, unlike the others",
        who=tuple(m.who for m in swap.outliers),
        evidence=(
            Evidence(f"{name_by_rank(swap.outliers)}: {second_site}, then {first_site}", calls),
            Evidence(f"{name_by_rank(swap.majority)}: {first_site}, then {second_site}", calls),
            Evidence(f"both are {swap.first}; {consistency}", "black box"),
        ),
        fix=f"make all ranks call them in the same order{fix}",
        certainty=Certainty.CERTAIN if swap.is_proven else Certainty.LIKELY,
        corrupts=True,
    )


def _file_and_line(frame: Frame) -> str:
    return f"{frame.file}:{frame.line}"


_ONE, _TWO = sample_signature(line=41), sample_signature(line=42)
_KEPT = (_ONE, _TWO) * 8
_ROOT = (
    sample_signature("broadcast", line=41, root=0),
    sample_signature("broadcast", line=42, root=0),
)


def _ranks_calling(*calls: tuple[Signature, ...]) -> JobView:
    return sample_job(*(member_with_calls(r, *c, size=len(calls)) for r, c in enumerate(calls)))


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("traces",),
    fires_on={
        "one of three ranks swaps two calls after eight times in the same order": (
            _ranks_calling((*_KEPT, _ONE, _TWO), (*_KEPT, _TWO, _ONE), (*_KEPT, _ONE, _TWO)),
            "worker 1 swapped two similar calls of all_reduce: train.py:42 in train before train.py:41 in "
            "train, unlike the others",
        ),
        "the first of two ranks swaps two calls at the end of a loop": (
            _ranks_calling((_TWO, *_KEPT, _TWO, _ONE), (_TWO, *_KEPT, _ONE, _TWO)),
            "worker 0 swapped two similar calls of all_reduce: train.py:42 in train before train.py:41 in "
            "train, unlike the others",
        ),
        "one of three ranks always calls in the opposite order": (
            _ranks_calling((_ONE, _TWO) * 3, (_ONE, _TWO) * 3, (_TWO, _ONE) * 3),
            "worker 2 swapped two similar calls of all_reduce: train.py:42 in train before train.py:41 in "
            "train, unlike the others",
        ),
    },
    silent_on={
        "rank 0 always calls at a line of its own": _ranks_calling(
            (_ONE,) * 20, (_TWO,) * 20, (_TWO,) * 20
        ),
        "three ranks that call at the two lines in turn": _ranks_calling(
            (_ONE, _TWO, _TWO) * 4, (_TWO, _ONE, _TWO) * 4, (_TWO, _TWO, _ONE) * 4
        ),
        "two ranks that call at the two lines in turn": _ranks_calling(
            (_ONE, _TWO) * 9, (_TWO, _ONE) * 9
        ),
        (
            "one of three ranks swaps two broadcasts, where senders may call at a line of their own"
        ): _ranks_calling(_ROOT * 3, _ROOT * 3, _ROOT[::-1] * 3),
        "a branch on the data decides which line is called": _ranks_calling(
            (_ONE, _ONE, _TWO, _ONE, _TWO), (_ONE, _TWO, _ONE, _ONE, _TWO), (_ONE,) * 5
        ),
        "a loop of three calls, in which both orders occur": _ranks_calling(
            (_ONE, _TWO, _TWO) * 8 + (_ONE, _TWO, _TWO, _ONE),
            (_ONE, _TWO, _TWO) * 8 + (_ONE, _TWO, _ONE, _TWO),
        ),
        "all ranks call in one order": _ranks_calling(_KEPT, _KEPT),
    },
    drill=("swapped-calls",),
)
