"""Some ranks called new_group, while others did not, or passed a different list.

torch.distributed requires all ranks of the job to call `new_group`, in the same order, including those that
are not in the group. No rank waits for the others in it (unless `TORCH_DIST_INIT_BARRIER=1`), so this may do
no harm: it is a warning.

## Why it matters
Each rank counts the groups that it creates, and that count is the name by which the ranks of a group find
each other. From here on the counts differ: the next group that all ranks create has two names, and its first
collective hangs.

## What to do
Call `new_group` on every rank, with the same list, before the `if` that tests who is a member. If only the
members are to call it, use `new_group(ranks, use_local_synchronization=True)`.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.collectives.collective_mismatch import (
    MismatchKind,
    find_mismatches,
    mismatch_claim,
)
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, JobView, Severity
from allaboard.facts.collective_calls import NEW_GROUP
from allaboard.facts.outcome import Retry
from allaboard.facts.samples import member_with_calls, sample_job, sample_signature


def check(view: JobView) -> Iterator[Claim]:
    for mismatch in find_mismatches(view, MismatchKind.OP):
        outlier_call, expected_call = mismatch.outlier_call, mismatch.expected_call
        if NEW_GROUP not in (outlier_call.op, expected_call.op):
            continue
        lists = outlier_call.op == expected_call.op
        certain = mismatch_claim(
            view,
            mismatch,
            f"called {outlier_call if lists else outlier_call.op}",
            str(expected_call) if lists else expected_call.op,
            "create the groups in the same order on all ranks, each with the same list"
            if lists
            else "call new_group on all ranks, or with use_local_synchronization=True on its members only",
        )
        yield msgspec.structs.replace(
            certain, severity=Severity.WARNING, certainty=Certainty.LIKELY, corrupts=False
        )


_STEP = sample_signature()
_NEW = sample_signature("new_group", dtype="", line=12)
_LISTS = [sample_signature("new_group", dtype=ranks, line=12) for ranks in ("0,1", "0,2")]


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("traces",),
    fires_on={
        "only two of three ranks call `new_group`": (
            sample_job(
                member_with_calls(0, _NEW, _STEP),
                member_with_calls(1, _NEW, _STEP),
                member_with_calls(2, _STEP, _STEP),
            ),
            "worker 2 called all_reduce where the others called new_group",
        ),
        "one rank creates the same groups in another order": (
            sample_job(*(member_with_calls(r, _LISTS[r == 2], _LISTS[r != 2]) for r in range(3))),
            "worker 2 called new_group(0,2) where the others called new_group(0,1)",
        ),
    },
    silent_on={
        "all ranks create the group": sample_job(
            member_with_calls(0, _NEW, _STEP),
            member_with_calls(1, _NEW, _STEP),
            member_with_calls(2, _NEW, _STEP),
        ),
        "one rank calls a barrier in place of an all_reduce, which HANG009 reports": sample_job(
            member_with_calls(0, _STEP),
            member_with_calls(1, sample_signature("barrier", dtype="")),
            member_with_calls(2, _STEP),
        ),
    },
    retry=Retry.NEVER,
    drill=("new-group-on-some", "new-group-order"),
)
