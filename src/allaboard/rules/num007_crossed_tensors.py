"""Ranks pass different parameters, gradients or buffers to the same call of a collective.

The calls come from one line, in the same number, with tensors of one shape: no backend can tell them apart.
allaboard knows each parameter and buffer by its path in the model, and sees that the ranks go through the
same tensors in different orders.

## Why it matters
The sums mix different tensors, on every rank. No rank hangs, no size differs, and the job exits with code 0;
the model just does not learn what it should.

## What to do
Make all ranks go through the tensors in one order. A loop over a set, over a dict that was filled in another
order, or over the answer of a thread pool differs between processes: sort it by name, or loop over
`model.named_parameters()`.

Tensors are known since PyTorch 2.0, and those that belong to a module: what was copied, flattened together or
cut into views is not followed.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.collectives.collective_mismatch import describe_group
from allaboard.analysis.collectives.crossed_tensors import CrossedTensors, find_crossed_tensors
from allaboard.analysis.member_names import name_by_rank, name_members
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member
from allaboard.facts.samples import member_with_calls, sample_job, sample_signature

MAX_SHOWN_SIDES = 3
"""Tensors that the summary names."""


def check(view: JobView) -> Iterator[Claim]:
    for crossed in find_crossed_tensors(view):
        yield _claim(view, crossed)


def _claim(view: JobView, crossed: CrossedTensors) -> Claim:
    site = crossed.call.site
    site_clause = f" at {site}" if site is not None else ""
    sides = [
        f"{name_by_rank(members)} {_tensor_name(name)}"
        for members, name in crossed.sides[:MAX_SHOWN_SIDES]
    ]
    no_majority = len(crossed.outliers) == sum(len(m) for m, _ in crossed.sides)
    subject = "the ranks" if no_majority else name_members(crossed.outliers)
    comparison = "" if no_majority else " than the others"
    return Claim(
        summary=f"{subject} passed {'different' if no_majority else 'other'} tensors{comparison} to the same "
        f"call of {crossed.call.op}{site_clause}: {', '.join(sides)}",
        who=tuple(m.who for m in crossed.outliers),
        evidence=(
            Evidence(
                "; ".join(sides), f"call {crossed.number} of {describe_group(view, crossed.group)}"
            ),
            Evidence(
                f"{crossed.crossed_calls} of the last {crossed.compared_calls} calls with a known tensor "
                f"differ, all {crossed.call}: the ranks go through the same tensors in different orders",
                "black box",
            ),
        ),
        fix="go through the tensors in one order on all ranks, sorted by name or as in "
        "model.named_parameters()" + (f": {site.file}:{site.line}" if site is not None else ""),
        certainty=Certainty.LIKELY,
        corrupts=True,
    )


def _tensor_name(path: str) -> str:
    return path or "a tensor whose name is not known any more"


_CALL = sample_signature()
_NAMES = {1: "Net.a.weight", 2: "Net.b.weight", 3: "Net.c.weight"}


def _member(rank: int, *tensors: int, size: int = 3) -> Member:
    member = member_with_calls(rank, *(_CALL for _ in tensors), size=size)
    (trace,), (state,) = member.traces, member.groups
    path, paths = 0, []
    for number, tensor in enumerate(tensors, 1):
        path = (path * 1000003 + tensor) & 0xFFFFFFFF
        paths.append((number, path))
    return msgspec.structs.replace(
        member,
        groups=(msgspec.structs.replace(state, paths=tuple(reversed(paths))),),
        traces=(msgspec.structs.replace(trace, tensors=tensors, tensor_names=_NAMES),),
    )


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("traces",),
    fires_on={
        "one of three ranks goes through the tensors in another order": (
            sample_job(_member(0, 1, 2, 3), _member(1, 3, 2, 1), _member(2, 1, 2, 3)),
            "worker 1 passed other tensors than the others to the same call of all_reduce at train.py:41 "
            "in train: ranks 0 and 2 Net.a.weight, rank 1 Net.c.weight",
        ),
        "two ranks go through the tensors in different orders": (
            sample_job(_member(0, 1, 2, 3, size=2), _member(1, 2, 3, 1, size=2)),
            "the ranks passed different tensors to the same call of all_reduce at train.py:41 in train: "
            "rank 0 Net.a.weight, rank 1 Net.b.weight",
        ),
    },
    silent_on={
        "all ranks go through the tensors in one order": sample_job(
            *(_member(r, 1, 2, 3) for r in range(3))
        ),
        "a model whose tensors have other names on one rank": sample_job(
            _member(0, 1, 2, 3), _member(1, 4, 5, 6), _member(2, 1, 2, 3)
        ),
        "some of the tensors belong to no module": sample_job(
            _member(0, 1, 0, 2), _member(1, 0, 1, 2), _member(2, 1, 0, 2)
        ),
        "only a single call differs": sample_job(
            _member(0, 1, 1, 1), _member(1, 2, 1, 1), _member(2, 1, 1, 1)
        ),
    },
    drill=("crossed-tensors",),
)
