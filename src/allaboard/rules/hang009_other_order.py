"""Ranks of a process group called different collectives at the same position.

Every rank of a group must call the same collectives in the same order. allaboard counts and compares the
calls. This is the first call that differs, so the finding is certain.

## Why it matters
The backends match calls only by their order. If the calls differ, gloo and NCCL wait forever, or silently mix
the bytes of two operations into wrong numbers.

## What to do
Compare the two lines. Common causes: a collective under `if rank == 0`, a metric or checkpoint that only one
rank reduces, an early `continue`, a loop over a set or dict whose order differs between ranks.

A call need not be in your own code. "DDP buffer broadcast" is the forward of a model that DDP wraps: it sends
the buffers (the statistics of batch normalisation, for example) from rank 0 to all others, also in
evaluation. Where one rank runs the model alone, call `model.module(...)`.

In JAX the calls of jitted functions over devices of several processes are compared, once the job stands still
or has failed. All of these processes must make them, also for a metric that only one of them prints. Such a
call without communication would not block, so this finding is likely there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from allaboard.analysis.collectives.collective_mismatch import (
    MismatchKind,
    are_different_models,
    find_mismatches,
    mismatch_claim,
)
from allaboard.analysis.collectives.left_loop import left_loop_evidence
from allaboard.analysis.collectives.unsampled_calls import awaits_stacks
from allaboard.analysis.data.batch_counts import compare_batch_counts
from allaboard.contracts import Relations, Rule
from allaboard.facts import Certainty, Claim, JobView, Loop, Member, Signature
from allaboard.facts.collective_calls import JITTED_GROUP, NEW_GROUP, is_jitted
from allaboard.facts.outcome import Retry
from allaboard.facts.samples import (
    USER,
    member_with_calls,
    sample_job,
    sample_signature,
    stalled_job,
)

_OWN_CALL_ADVICE = {
    "DDP buffer broadcast": "let all ranks run the DDP model, or call model.module(...) where one rank "
    "runs it alone",
    "DDP construction": "let all ranks make the DDP model",
}
"""Advice by the names of the calls that DDP makes by itself."""


def check(view: JobView) -> Iterator[Claim]:
    for mismatch in find_mismatches(view, MismatchKind.OP):
        outlier_call, expected_call = mismatch.outlier_call, mismatch.expected_call
        if NEW_GROUP in (outlier_call.op, expected_call.op):
            continue  # new_group blocks no rank by itself; HANG016 reports it
        if awaits_stacks(view, mismatch):
            continue  # they show in a moment which loop one side has left
        # Without a majority all ranks are outliers: they are divided by what they called.
        callers, others = (
            [m for m, s in mismatch.calls if (s.required == outlier_call.required) is is_outlier]
            for is_outlier in (True, False)
        )
        batch_counts = compare_batch_counts(callers, others)
        more = ""
        if batch_counts is not None:
            fewer_batches, usual_batches = batch_counts
            steps = (
                f"{usual_batches - fewer_batches} "
                f"step{'s' if usual_batches - fewer_batches > 1 else ''} fewer"
            )
            more = f": it ran {steps} ({fewer_batches} batches, not {usual_batches})"
        outlier_text, expected_text = f"called {outlier_call.op}", expected_call.op
        if are_different_models(outlier_call, expected_call):
            outlier_text = f"ran the backward of a DDP model of {outlier_call.elements} parameters"
            expected_text = f"that of one of {expected_call.elements}"
        claim = mismatch_claim(
            view,
            mismatch,
            outlier_text,
            f"{expected_text}{more}",
            "make all ranks run the same number of steps"
            if batch_counts is not None
            else _advice(outlier_call, expected_call),
        )
        if is_jitted(mismatch.group):
            claim = msgspec.structs.replace(claim, certainty=Certainty.LIKELY, corrupts=False)
        if _stand_at(callers, outlier_call) and _stand_at(others, expected_call):
            loops = left_loop_evidence(callers, others) or left_loop_evidence(others, callers)
            claim = msgspec.structs.replace(claim, evidence=(*claim.evidence, *loops))
        yield claim


def _stand_at(members: Sequence[Member], call: Signature) -> bool:
    """Return True if the stacks of all these members were sampled at the line of this call."""
    site = call.site
    lines = {
        (m.stack.user.file, m.stack.user.line)
        if m.stack is not None and m.stack.user is not None
        else None
        for m in members
    }
    return site is not None and lines == {(site.file, site.line)}


def _advice(*calls: Signature) -> str:
    """Return what to do about these calls, one of which only some ranks make."""
    own_advice = next((a for c in calls if (a := _OWN_CALL_ADVICE.get(c.op))), "")
    what = "jitted functions" if all(c.op.startswith("jit ") for c in calls) else "collectives"
    return own_advice or f"make all ranks call the same {what} in the same order"


def _with_batches(batches: int, over: bool = False) -> dict[str, Any]:
    return {"loops": (Loop(USER, 1, batches, *((1, batches) if over else ())),)}


_STEP = sample_signature()
_FORWARD = sample_signature("DDP buffer broadcast", line=28, root=0)
_BARRIER = sample_signature("barrier", line=51, dtype="")
_CAST = sample_signature("broadcast", line=33, root=0)
_JUDGE = sample_signature("DDP backward", line=19, elements=2177, shape="2177")
_MAKER = sample_signature("DDP backward", line=25, elements=3168, shape="3168")


def _jitted_member(rank: int, *calls: Signature) -> Member:
    return member_with_calls(rank, *calls, size=2, group=JITTED_GROUP)


_TRAIN = sample_signature("jit train_step", dtype="", shape="")
_VALIDATE = sample_signature("jit validation_loss", line=52, dtype="", shape="")


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("traces",),
    fires_on={
        "one of three ranks calls a broadcast in place of the all_reduce": (
            sample_job(
                member_with_calls(0, _STEP, _STEP),
                member_with_calls(1, _STEP, _CAST),
                member_with_calls(2, _STEP, _STEP),
            ),
            "worker 1 called broadcast where the others called all_reduce",
        ),
        "one rank runs the backward of another DDP model than the others": (
            sample_job(
                member_with_calls(0, _JUDGE, _MAKER),
                member_with_calls(1, _JUDGE, _JUDGE),
                member_with_calls(2, _JUDGE, _MAKER),
            ),
            "worker 1 ran the backward of a DDP model of 2177 parameters where the others ran that of one "
            "of 3168",
        ),
        "rank 0 alone validates with the DDP model": (
            sample_job(
                member_with_calls(0, _STEP, _FORWARD),
                member_with_calls(1, _STEP, _BARRIER),
                member_with_calls(2, _STEP, _BARRIER),
            ),
            "worker 0 called DDP buffer broadcast where the others called barrier",
        ),
        "two ranks whose first calls differ": (
            sample_job(member_with_calls(0, _STEP, size=2), member_with_calls(1, _CAST, size=2)),
            "rank 1 called broadcast where rank 0 called all_reduce",
        ),
        "only one process calls a jitted function of JAX, and the job stands still": (
            stalled_job(
                _jitted_member(0, _TRAIN, _VALIDATE, _TRAIN), _jitted_member(1, _TRAIN, _TRAIN)
            ),
            "rank 1 called jit train_step where rank 0 called jit validation_loss",
        ),
        "one rank leaves its training loop one batch early": (
            sample_job(
                member_with_calls(0, _STEP, **_with_batches(60)),
                member_with_calls(1, _CAST, **_with_batches(59, over=True)),
                member_with_calls(2, _STEP, **_with_batches(60)),
            ),
            "worker 1 called broadcast where the others called all_reduce: it ran 1 step fewer (59 "
            "batches, not 60)",
        ),
        "one rank calls a broadcast in the middle of its training loop": (
            sample_job(
                member_with_calls(0, _STEP, **_with_batches(60)),
                member_with_calls(1, _CAST, **_with_batches(59)),
                member_with_calls(2, _STEP, **_with_batches(60)),
            ),
            "worker 1 called broadcast where the others called all_reduce",
        ),
        "one rank calls a broadcast after as many batches as the others": (
            sample_job(
                member_with_calls(0, _STEP, **_with_batches(60)),
                member_with_calls(1, _CAST, **_with_batches(60)),
                member_with_calls(2, _STEP, **_with_batches(60)),
            ),
            "worker 1 called broadcast where the others called all_reduce",
        ),
    },
    silent_on={
        "only one rank calls `new_group`, which HANG016 reports": sample_job(
            member_with_calls(0, _STEP),
            member_with_calls(1, sample_signature("new_group", dtype="")),
            member_with_calls(2, _STEP),
        ),
        "all ranks validate with the DDP model": sample_job(
            *(member_with_calls(r, _STEP, _FORWARD, _BARRIER) for r in range(3))
        ),
        "one rank has made one call fewer so far": sample_job(
            member_with_calls(0, _STEP, _CAST),
            member_with_calls(1, _STEP),
            member_with_calls(2, _STEP, _CAST),
        ),
        "only one process calls a jitted function of JAX, and all go on": sample_job(
            _jitted_member(0, _TRAIN, _VALIDATE, _TRAIN), _jitted_member(1, _TRAIN, _TRAIN)
        ),
        "one rank makes the same call at another line": sample_job(
            member_with_calls(0, _STEP),
            member_with_calls(1, sample_signature(line=50)),
            member_with_calls(2, _STEP),
        ),
        "two ranks made different calls, and the third has made none yet": sample_job(
            member_with_calls(0, _STEP), member_with_calls(1, _CAST), member_with_calls(2)
        ),
    },
    retry=Retry.NEVER,
    relations=Relations(explains=("LOG003",)),
    drill=(
        "jax-collectives-differ",
        "other-order",
        "other-order-functional",
        "ddp-validates-alone",
        "fsdp-validates-alone",
        "sharded-step-alone",
    ),
)
