"""Some ranks made two calls that look alike in the other order.

Both calls have the same operation, shape and dtype, so the backend cannot tell them apart: it adds one
rank's first tensor to the others' second. The lines in the code show it: some ranks called at one line and
then at the other, the rest the other way round. After eight repetitions in one order the finding is
certain; if the order was never kept, it is likely.

## Why it matters
Both sums are silently wrong, on every rank: nobody hangs, no size differs, and the job ends with exit code
0.

## What to do
Look at the two lines, and at what decides which comes first: a branch on something that differs between
ranks, the order of a set or dict, a callback or hook that fires earlier on one rank. Make the order the
same on all ranks.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.collectives.collective_mismatch import describe_group
from allaboard.analysis.collectives.swapped_collectives import Swap, find_swaps
from allaboard.analysis.member_names import names
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Frame, JobView, Member, Signature, Stage
from allaboard.facts.samples import called, job, signature


def check(view: JobView) -> Iterator[Claim]:
    for found in find_swaps(view):
        yield _claim(view, found)


def _claim(view: JobView, found: Swap) -> Claim:
    one, two = found.first.site, found.second.site
    where = f"calls {found.number} and {found.second_number} of {describe_group(view, found.group)}"
    kept = (
        f"{found.repeats} times before" if found.repeats else "never in the same order on all ranks"
    )
    fix = f"; compare {_place(one)} with {_place(two)}" if one and two else ""
    return Claim(
        summary=f"{names(found.outliers)} swapped two calls of {found.first.op} that look alike: "
        f"at {two} before {one}, the others after it",
        who=tuple(m.who for m in found.outliers),
        evidence=(
            Evidence(f"rank {_ranks(found.outliers)}: {two}, then {one}", where),
            Evidence(f"rank {_ranks(found.majority)}: {one}, then {two}", where),
            Evidence(f"both are {found.first}; {kept}", "black box"),
        ),
        fix=f"make all ranks call them in the same order{fix}",
        certainty=Certainty.CERTAIN if found.is_proven else Certainty.LIKELY,
        corrupts=True,
    )


def _ranks(members: tuple[Member, ...]) -> str:
    return ", ".join(str(m.who.rank) for m in members[:16])


def _place(frame: Frame) -> str:
    return f"{frame.file}:{frame.line}"


_ONE, _TWO = signature(line=41), signature(line=42)
_KEPT = (_ONE, _TWO) * 8
_ROOT = signature("broadcast", line=41, root=0), signature("broadcast", line=42, root=0)


def _ranks_calling(*calls: tuple[Signature, ...]) -> JobView:
    return job(*(called(r, *c, size=len(calls)) for r, c in enumerate(calls)))


RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    needs=("traces",),
    fires_on={
        "once, after eight times in order": (
            _ranks_calling((*_KEPT, _ONE, _TWO), (*_KEPT, _TWO, _ONE), (*_KEPT, _ONE, _TWO)),
            "worker 1 swapped two calls of all_reduce that look alike: at train.py:42 in train "
            "before train.py:41 in train, the others after it",
        ),
        "in a loop, by the first rank": (
            _ranks_calling((_TWO, *_KEPT, _TWO, _ONE), (_TWO, *_KEPT, _ONE, _TWO)),
            "worker 0 swapped two calls of all_reduce that look alike: at train.py:42 in train "
            "before train.py:41 in train, the others after it",
        ),
        "always, by one of three": (
            _ranks_calling((_ONE, _TWO) * 3, (_ONE, _TWO) * 3, (_TWO, _ONE) * 3),
            "worker 2 swapped two calls of all_reduce that look alike: at train.py:42 in train "
            "before train.py:41 in train, the others after it",
        ),
    },
    silent_on={
        "a line of its own for rank 0": _ranks_calling((_ONE,) * 20, (_TWO,) * 20, (_TWO,) * 20),
        "each in turn": _ranks_calling(
            (_ONE, _TWO, _TWO) * 4, (_TWO, _ONE, _TWO) * 4, (_TWO, _TWO, _ONE) * 4
        ),
        "two ranks in turn": _ranks_calling((_ONE, _TWO) * 9, (_TWO, _ONE) * 9),
        "roots in turn": _ranks_calling(_ROOT * 3, _ROOT * 3, _ROOT[::-1] * 3),
        "a branch by the data": _ranks_calling(
            (_ONE, _ONE, _TWO, _ONE, _TWO), (_ONE, _TWO, _ONE, _ONE, _TWO), (_ONE,) * 5
        ),
        "in a loop of three, where both orders occur": _ranks_calling(
            (_ONE, _TWO, _TWO) * 8 + (_ONE, _TWO, _TWO, _ONE),
            (_ONE, _TWO, _TWO) * 8 + (_ONE, _TWO, _ONE, _TWO),
        ),
        "in one order": _ranks_calling(_KEPT, _KEPT),
    },
    since="0.1",
    drill=("swapped-calls",),
)
