"""The loss of a member is not finite any more: NaN or infinity, in every step since.

Looked at is the value that each backward begins from, where it is one number on the CPU (a number on a GPU
would have to be waited for). One bad value now and then is no finding: loops that skip such a step, and
mixed precision that tries a scale, meet them by right. Three in a row are told, with the rank and the step
where it began.

## Why it matters
From the first NaN on all parameters are NaN, on every rank after the next average. The job goes on to its
end and saves checkpoints of nothing.

## What to do
Look at the batch of that step on that rank: an empty shard (a mean over nothing), a label out of range, a
division by zero, a logarithm of zero. Lower the learning rate where all ranks diverge at once;
`torch.autograd.set_detect_anomaly(True)` names the operation. Go back to the last checkpoint before that
step.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.evidence.naming import names
from allaboard.facts import Certainty, Claim, Evidence, JobView, Loss, Member, Severity, Stage
from allaboard.facts.samples import job, member

ROW = 3
"""Values in a row that must be bad."""


def check(view: JobView) -> Iterator[Claim]:
    bad = [m for m in view.members if m.loss is not None and m.loss.bad >= ROW]
    if bad:
        yield _claim(bad)


def _claim(bad: list[Member]) -> Claim:
    steps = {m.called: m.loss.step for m in bad if m.loss is not None}
    first = min(steps.values())
    began = [m for m in bad if steps[m.called] == first]
    loss = began[0].loss
    assert loss is not None
    others = "".join(
        f"; rank {m.who.rank} from step {steps[m.called]}" for m in bad if m not in began
    )
    return Claim(
        summary=f"the loss of {names(tuple(began))} is {loss.value} since step {first}",
        who=tuple(m.who for m in began),
        evidence=(
            Evidence(
                f"rank {', '.join(str(m.who.rank) for m in began)} from step {first}{others}; "
                f"{loss.bad} values in a row",
                "the value that backward begins from",
            ),
        ),
        fix=f"look at the batch of step {first} on rank {began[0].who.rank}; "
        "torch.autograd.set_detect_anomaly(True) names the operation; "
        "go back to a checkpoint from before",
        severity=Severity.ERROR,
        certainty=Certainty.CERTAIN,
        corrupts=True,
    )


def _losing(rank: int, bad: int, step: int = 60, value: str = "nan") -> Member:
    return member(rank, loss=Loss(bad=bad, step=step, value=value))


RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    needs=("loss",),
    fires_on={
        "first on one rank": (
            job(_losing(0, 4, 61), _losing(1, 5), _losing(2, 4, 61)),
            "the loss of worker 1 is nan since step 60",
        ),
        "infinity": (
            job(_losing(0, 3, value="inf"), member(1), member(2)),
            "the loss of worker 0 is inf since step 60",
        ),
    },
    silent_on={
        "a step that is skipped": job(_losing(0, 1), member(1), member(2)),
        "it was bad once": job(_losing(0, 0), member(1), member(2)),
        "never seen": job(member(0), member(1), member(2)),
    },
    since="0.1",
    drill=("nan-loss",),
)
