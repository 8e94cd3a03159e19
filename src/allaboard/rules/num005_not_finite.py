"""The loss of a worker is no longer finite: it is NaN or infinite in every step since.

With PyTorch, allaboard reads the value on which each backward is called. With TensorFlow and JAX it reads
what the step function returns: a number, the first of several, or the one named `loss`. That may be something
other than the loss, so the finding is `likely` there, and a function that never returned a finite number is
ignored. Only numbers on the CPU are read (reading from a GPU would make the program wait). NUM009 goes by
what a program prints, where no loss is read.

Single bad values are not reported: loops that skip such a step, and mixed precision that tries a scale, meet
them in normal operation. Three in a row are reported, with the rank and the step where they began. If they
began on all ranks in the same step, no rank is singled out: most likely one rank's gradient was not finite in
the previous update, and the average passed it on to all; or what the step returns is an average itself.

## Why it matters
From the first NaN on, all parameters are NaN, on every rank after the next average. The job runs to its end
and saves worthless checkpoints.

## What to do
Look at the batch of that step on that rank: an empty shard (a mean over nothing), a label out of range, a
division by zero, a logarithm of zero. If all ranks diverge at once, lower the learning rate.
`torch.autograd.set_detect_anomaly(True)`, `tf.debugging.enable_check_numerics()` or
`jax.config.update("jax_debug_nans", True)` names the operation. Restart from the last checkpoint before that
step.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.member_names import name_members
from allaboard.analysis.numeric_advice import advise_numeric_check
from allaboard.analysis.parameter_servers import only_serves
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Loss, Member, Phase, Severity
from allaboard.facts.rank_sets import name_ranks
from allaboard.facts.samples import sample_job, sample_member

MIN_BAD_VALUES = 3
"""Consecutive values that must be bad before it is reported."""


OTHERS_DELAY_S = 3.0
"""Seconds to wait for the others' values of the step where it began: those of other hosts arrive every
second, and the rank where it began may be among them."""


MAX_JAX_LEAD_STEPS = 64
"""Steps that a JAX program may be ahead of its values: another rank's bad value may not be visible yet."""
RETURNED_VALUE = "the value that the step returns"
"""Source of the value in frameworks of which the return value of a step is read."""
READ_FROM_STEP = ("tensorflow", "jax")
"""Frameworks of which the return value of a step is read."""


def check(view: JobView) -> Iterator[Claim]:
    bad = [m for m in view.members if m.loss is not None and m.loss.bad >= MIN_BAD_VALUES]
    if bad and not view.ending and not _may_be_earlier(view, bad):
        yield _claim(view, bad)


def _may_be_earlier(view: JobView, bad: list[Member]) -> bool:
    """Return True if another rank's loss may have been bad earlier, but is not known yet."""
    losses = [m.loss for m in bad if m.loss is not None]
    first_loss = min(losses, key=lambda loss: loss.step)
    ahead = MAX_JAX_LEAD_STEPS if bad[0].framework == "jax" else 0
    if any(
        m.step < first_loss.step + ahead
        for m in view.alive
        if ahead and _is_training(m) and m not in bad
    ):
        return True
    if (
        view.median_step is None
        or first_loss.bad * view.median_step >= OTHERS_DELAY_S
        or view.stalled
    ):
        return False
    return any(m.step < first_loss.step for m in view.alive if _is_training(m) and m not in bad)


def _claim(view: JobView, bad: list[Member]) -> Claim:
    steps = {m.event_key: m.loss.step for m in bad if m.loss is not None}
    first_step = min(steps.values())
    first_members = [m for m in bad if steps[m.event_key] == first_step]
    loss = first_members[0].loss
    assert loss is not None
    later_ranks = "".join(
        f"; rank {m.who.rank} from step {steps[m.event_key]}" for m in bad if m not in first_members
    )
    ranks = name_ranks([m.who.rank for m in first_members])
    trains = [m for m in view.members if _is_training(m)]
    all_at_once = len(first_members) == len(trains) > 1
    framework = first_members[0].framework
    returned = framework in READ_FROM_STEP
    subject = f"the loss of {name_members(first_members)} has been"
    if all_at_once:
        subject = f"the losses of all {len(first_members)} ranks have been"
    return Claim(
        summary=f"{subject} {loss.value} since step {first_step}",
        who=tuple(m.who for m in first_members),
        evidence=(
            Evidence(
                f"{ranks} from step {first_step}{later_ranks}; {loss.bad} values in a row",
                RETURNED_VALUE if returned else "the value on which backward is called",
            ),
        ),
        fix=(
            _advise_common_cause(first_step, returned)
            if all_at_once
            else f"look at the batch of step {first_step} on {ranks}; "
        )
        + f"{advise_numeric_check(framework)}; restart from an earlier checkpoint",
        severity=Severity.WARNING if returned else Severity.ERROR,
        certainty=Certainty.LIKELY if returned else Certainty.CERTAIN,
        corrupts=not returned,
    )


def _advise_common_cause(first_step: int, returned: bool) -> str:
    """Return what to look at if no rank was the first: gradients are averaged, so all ranks get the bad one;
    what a step returns may be an average over the ranks too."""
    if first_step <= 1:
        return "look at the data and the initial values of the model: there was no earlier update; "
    if returned:
        return (
            f"look at the batches of step {first_step} on each rank, and at the update of step "
            f"{first_step - 1} (norms "
            "of gradients before the average): one rank's bad value is in the average of all; "
        )
    return (
        f"look at the update of step {first_step - 1}, which most likely left values that are not finite; "
        "which rank's gradient caused it is not known (log its norm on each rank before the all-reduce); "
    )


def _is_training(member: Member) -> bool:
    return member.phase is Phase.TRAINING and not member.launcher and not only_serves(member)


def _losing(
    rank: int, bad: int, step: int = 60, value: str = "nan", framework: str = "torch"
) -> Member:
    loss = Loss(bad=bad, step=step, value=value)
    return sample_member(rank, step=step + bad, loss=loss, framework=framework)


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("loss",),
    fires_on={
        "the loss is NaN on one rank first, then on the others": (
            sample_job(_losing(0, 4, 61), _losing(1, 5), _losing(2, 4, 61)),
            "the loss of worker 1 has been nan since step 60",
        ),
        "the losses of all ranks are NaN since the same step": (
            sample_job(*(_losing(r, 4) for r in range(3))),
            "the losses of all 3 ranks have been nan since step 60",
        ),
        "the loss of one rank is infinite": (
            sample_job(
                _losing(0, 3, value="inf"),
                sample_member(1, step=62),
                sample_member(2, step=60),
                median_step=0.1,
            ),
            "the loss of worker 0 has been inf since step 60",
        ),
        "the value that TensorFlow's step returns is NaN on all ranks": (
            sample_job(*(_losing(r, 4, framework="tensorflow") for r in range(2))),
            "the losses of all 2 ranks have been nan since step 60",
        ),
        "the value that JAX's step returns is NaN on all ranks": (
            sample_job(*(_losing(r, 4, framework="jax") for r in range(2))),
            "the losses of all 2 ranks have been nan since step 60",
        ),
        "the value is NaN on one rank of JAX, and the other is 70 steps further": (
            sample_job(
                _losing(0, 80, framework="jax"), sample_member(1, step=130, framework="jax")
            ),
            "the loss of worker 0 has been nan since step 60",
        ),
        "the loss has been NaN for 40 steps on one rank, and another stays at an earlier step": (
            sample_job(_losing(0, 40), sample_member(1, step=58), median_step=0.1),
            "the loss of worker 0 has been nan since step 60",
        ),
    },
    silent_on={
        "a single NaN, in a step that is skipped": sample_job(
            _losing(0, 1), sample_member(1), sample_member(2)
        ),
        "the loss is NaN on two ranks, and perhaps was so earlier on a third, on another host": sample_job(
            _losing(0, 4, 61), sample_member(1, step=58), _losing(2, 4, 61), median_step=0.1
        ),
        "the job is being ended": sample_job(_losing(0, 40), ending=True),
        "the value is NaN on one rank of JAX, and another's value may not be there yet": sample_job(
            _losing(0, 40, framework="jax"),
            sample_member(1, step=100, framework="jax"),
            median_step=0.1,
        ),
        "the loss is finite again": sample_job(_losing(0, 0), sample_member(1), sample_member(2)),
        "no loss has been read": sample_job(sample_member(0), sample_member(1), sample_member(2)),
    },
    drill=("nan-loss", "tf-nan-loss", "jax-nan-loss"),
)
