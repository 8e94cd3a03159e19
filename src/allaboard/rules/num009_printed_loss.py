"""The losses that a worker prints are no longer finite.

A loss on a GPU is not read where backward is called, since reading it would make the program wait (NUM005
reads those on CPUs). Most programs print it: `loss: nan`, `loss=nan` in a progress bar, `{'loss': nan}`.
Three values in a row that are NaN or infinite are reported, if no worker's loss is read. Losses of a
validation or a test do not count, nor does what a program calls the best, the last or the least loss.
A line with several losses counts only if all of them are bad, and one that says that a batch is skipped does
not count.

## Why it matters
From the first NaN on, all parameters are NaN, on every rank after the next average. The job runs to its end
and saves worthless checkpoints.

## What to do
On which rank it began is not known: the average passes it on to all. Look at the batch of that step (an empty
shard, a label out of range, a logarithm of zero) and at the learning rate.
`torch.autograd.set_detect_anomaly(True)`, `tf.debugging.enable_check_numerics()` or
`jax.config.update("jax_debug_nans", True)` names the operation. Restart from the last checkpoint before it.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.member_names import name_members
from allaboard.analysis.numeric_advice import CHECK_BATCH, advise_numeric_check
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member, Severity
from allaboard.facts.samples import sample_job, sample_member
from allaboard.facts.time_shares import PrintedLoss

MIN_BAD_VALUES = 3
"""Consecutive values that must be bad: a step with mixed precision may be skipped for a single one."""


def check(view: JobView) -> Iterator[Claim]:
    if view.ending or any(m.loss is not None or m.last_loss is not None for m in view.members):
        return
    for member in view.alive:
        printed = member.printed_loss
        if printed is not None and printed.bad >= MIN_BAD_VALUES:
            yield _claim(member, printed)


def _claim(member: Member, printed: PrintedLoss) -> Claim:
    return Claim(
        summary=f"{name_members([member])} prints losses that are not finite: {printed.line}",
        who=(member.who,),
        evidence=(
            Evidence("the last losses are not finite; this is the first of them", member.log),
        ),
        fix=f"{CHECK_BATCH}; {advise_numeric_check(member.framework)}; restart from an earlier checkpoint",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
    )


def _printing(rank: int, bad: int, last_loss: float | None = None) -> Member:
    printed = PrintedLoss(bad, "epoch 3 step 120 loss nan")
    return sample_member(rank, printed_loss=printed, last_loss=last_loss)


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("printed_loss",),
    fires_on={
        "a program on GPUs prints that its loss is NaN": (
            sample_job(_printing(0, 3), sample_member(1)),
            "worker 0 prints losses that are not finite: epoch 3 step 120 loss nan",
        )
    },
    silent_on={
        "a single one, in a step that is skipped": sample_job(_printing(0, 1), sample_member(1)),
        "something else is printed, while the losses that are read are finite": sample_job(
            _printing(0, 9, last_loss=0.3), sample_member(1)
        ),
        "the job is being ended": sample_job(_printing(0, 9), ending=True),
        "nothing is printed": sample_job(sample_member(0), sample_member(1)),
    },
    drill=("nan-printed",),
)
