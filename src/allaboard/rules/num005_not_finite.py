"""The loss of a worker is not finite any more: NaN or infinity, in every step since.

With PyTorch, allaboard looks at the value that each backward begins from. With TensorFlow and JAX it looks at
what the function of a step returns: one number, the first of several, or what is called `loss` among them.
That may be something else than the loss, so the finding is `likely` there, and a function that never returned
a finite number is let be. Only numbers on the CPU are looked at (one on a GPU would have to be waited for).

One bad value now and then is not reported: loops that skip such a step, and mixed precision that tries a
scale, meet them in normal operation. Three in a row are reported, with the rank and the step where it began.
If it began on all ranks in the same step, no rank is singled out: most likely one rank's gradient was not
finite in the update before, and the average carried it to all; or what the step returns is an average itself.

## Why it matters
From the first NaN on, all parameters are NaN, on every rank after the next average. The job goes on to its
end and saves worthless checkpoints.

## What to do
Look at the batch of that step on that rank: an empty shard (a mean over nothing), a label out of range, a
division by zero, a logarithm of zero. If all ranks diverge at once, lower the learning rate.
`torch.autograd.set_detect_anomaly(True)`, `tf.debugging.enable_check_numerics()` or
`jax.config.update("jax_debug_nans", True)` names the operation. Go back to the last checkpoint before that
step.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.member_names import names
from allaboard.analysis.parameter_servers.parameter_servers import serves
from allaboard.contracts import Rule
from allaboard.facts import (
    Certainty,
    Claim,
    Evidence,
    JobView,
    Loss,
    Member,
    Phase,
    Severity,
    Stage,
)
from allaboard.facts.samples import job, member

ROW = 3
"""Values in a row that must be bad."""


WAIT = 3.0
"""Seconds to wait for the others' news of the step in which it began: from other hosts they come every
second, and the rank where it began may be among them."""


AHEAD = 64
"""Steps that a JAX program may be ahead of its values: another rank may have a bad one not seen yet."""
RETURNED = "the value that the step returns"
CHECKS = {
    "tensorflow": "tf.debugging.enable_check_numerics()",
    "jax": 'jax.config.update("jax_debug_nans", True)',
}
"""What names the operation, in frameworks of which the values are seen that a step returns."""


def check(view: JobView) -> Iterator[Claim]:
    bad = [m for m in view.members if m.loss is not None and m.loss.bad >= ROW]
    if bad and not view.ending and not _may_be_earlier(view, bad):
        yield _claim(view, bad)


def _may_be_earlier(view: JobView, bad: list[Member]) -> bool:
    """Whether it is not known yet that the loss of the others was fine until then."""
    losses = [m.loss for m in bad if m.loss is not None]
    first = min(losses, key=lambda loss: loss.step)
    ahead = AHEAD if bad[0].framework == "jax" else 0
    if any(
        m.step < first.step + ahead for m in view.alive if ahead and _trains(m) and m not in bad
    ):
        return True
    if view.median_step is None or first.bad * view.median_step >= WAIT or view.stalled:
        return False
    return any(m.step < first.step for m in view.alive if _trains(m) and m not in bad)


def _claim(view: JobView, bad: list[Member]) -> Claim:
    steps = {m.called: m.loss.step for m in bad if m.loss is not None}
    first = min(steps.values())
    began = [m for m in bad if steps[m.called] == first]
    loss = began[0].loss
    assert loss is not None
    others = "".join(
        f"; rank {m.who.rank} from step {steps[m.called]}" for m in bad if m not in began
    )
    ranks = ", ".join(str(m.who.rank) for m in began)
    trains = [m for m in view.members if _trains(m)]
    together = len(began) == len(trains) > 1
    checks = CHECKS.get(began[0].framework, "")
    returned = bool(checks)
    whose = f"the loss of {names(began)} has been"
    if together:
        whose = f"the losses of all {len(began)} ranks have been"
    return Claim(
        summary=f"{whose} {loss.value} since step {first}",
        who=tuple(m.who for m in began),
        evidence=(
            Evidence(
                f"rank {ranks} from step {first}{others}; {loss.bad} values in a row",
                RETURNED if returned else "the value that backward begins from",
            ),
        ),
        fix=(
            _before(first, returned)
            if together
            else f"look at the batch of step {first} on rank {ranks}; "
        )
        + f"{checks or 'torch.autograd.set_detect_anomaly(True)'} names the operation; "
        "go back to a checkpoint from before",
        severity=Severity.WARNING if returned else Severity.ERROR,
        certainty=Certainty.LIKELY if returned else Certainty.CERTAIN,
        corrupts=not returned,
    )


def _before(first: int, returned: bool) -> str:
    """What to look at where no rank was the first: gradients are averaged, so that all get the bad one; what
    a step returns may be an average over the ranks too."""
    if first <= 1:
        return "look at the data and the values that the model starts from: no update came before; "
    if returned:
        return (
            f"look at the batches of step {first} on each rank, and at the update of step {first - 1} (norms "
            "of gradients before the average): one rank's bad value is in the average of all; "
        )
    return (
        f"look at the update of step {first - 1}: most likely it left values that are not finite, of which "
        "rank's gradient is not known (check its norm before the average, on each rank); "
    )


def _trains(one: Member) -> bool:
    return one.phase is Phase.TRAINING and not one.launcher and not serves(one)


def _losing(
    rank: int, bad: int, step: int = 60, value: str = "nan", framework: str = "torch"
) -> Member:
    loss = Loss(bad=bad, step=step, value=value)
    return member(rank, step=step + bad, loss=loss, framework=framework)


RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    needs=("loss",),
    fires_on={
        "first on one rank": (
            job(_losing(0, 4, 61), _losing(1, 5), _losing(2, 4, 61)),
            "the loss of worker 1 has been nan since step 60",
        ),
        "on all at once, which is no rank's own": (
            job(*(_losing(r, 4) for r in range(3))),
            "the losses of all 3 ranks have been nan since step 60",
        ),
        "infinity": (
            job(
                _losing(0, 3, value="inf"), member(1, step=62), member(2, step=60), median_step=0.1
            ),
            "the loss of worker 0 has been inf since step 60",
        ),
        "what TensorFlow's step returns": (
            job(*(_losing(r, 4, framework="tensorflow") for r in range(2))),
            "the losses of all 2 ranks have been nan since step 60",
        ),
        "what JAX's step returns": (
            job(*(_losing(r, 4, framework="jax") for r in range(2))),
            "the losses of all 2 ranks have been nan since step 60",
        ),
        "on one rank, and others of JAX have got far since": (
            job(_losing(0, 80, framework="jax"), member(1, step=130, framework="jax")),
            "the loss of worker 0 has been nan since step 60",
        ),
        "another does not get on": (
            job(_losing(0, 40), member(1, step=58), median_step=0.1),
            "the loss of worker 0 has been nan since step 60",
        ),
    },
    silent_on={
        "a step that is skipped": job(_losing(0, 1), member(1), member(2)),
        "it may have begun on another host, of which the news is older": job(
            _losing(0, 4, 61), member(1, step=58), _losing(2, 4, 61), median_step=0.1
        ),
        "the job is being ended": job(_losing(0, 40), ending=True),
        "JAX's value of another rank may not be there yet": job(
            _losing(0, 40, framework="jax"), member(1, step=100, framework="jax"), median_step=0.1
        ),
        "it was bad once": job(_losing(0, 0), member(1), member(2)),
        "never seen": job(member(0), member(1), member(2)),
    },
    since="0.1",
    drill=("nan-loss", "tf-nan-loss", "jax-nan-loss"),
)
