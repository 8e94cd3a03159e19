"""The loss has not moved since the training began.

The probe sees the loss where it is one number on the CPU (PyTorch, JAX) or returned by the step (TensorFlow).
allaboard divides all losses of a rank since its first step into 8 to 15 equal parts, and reports if the means
of these parts lie within 1 % of each other: over 1000 steps and a minute at least, on every rank whose loss
is seen, while all ranks train. Losses that scatter need more of them. A loss that fell first and stays where
it is has moved; a value that repeats to the last digit, one that is 0 or negative (policies, critics), and
values on a GPU are not judged. The finding is for information only: no action follows from it.

## Why it matters
All processes are well, and the job computes for nothing: the accuracy stays that of a guess.

## What to do
Print the learning rate and the norms of the gradients for one step. Usual causes: the optimizer was made of
other parameters than those that train (before the model was replaced, copied or wrapped by FSDP); frozen
parameters; a learning rate of 0, of a warm-up that counts epochs as steps, or far too small; gradients that
are zeroed after backward, or scaled away; labels that do not belong to their inputs. `--check-values 50`
shows whether the parameters change at all. Benchmarks on random data have such a loss by design.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import msgspec

from allaboard.analysis.data.batch_comparison import find_repeating_members
from allaboard.analysis.member_names import name_members
from allaboard.analysis.resources.host_load import is_whole_job_training
from allaboard.contracts import Relations, Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member, Phase, Severity
from allaboard.facts.samples import sample_job, sample_member
from allaboard.facts.time_shares import Check, Loss, LossCourse

MIN_STEPS = 1000
"""Steps over which the loss must not have moved, ..."""
MIN_SPAN_S = 60.0
"""... seconds, ..."""
MIN_SAMPLES = 50
"""... and different losses that were seen."""
MAX_MOVED = 0.01
"""Share of the loss by which the means of its parts may differ at most, ..."""
MAX_FALL_AT_FIRST = 0.05
"""... and by which its first values may: a fall that is over soon hardly shows in the mean of a part."""


def check(view: JobView) -> Iterator[Claim]:
    if view.stalled or not is_whole_job_training(view):
        return
    observed = [m for m in view.alive if m.loss_course is not None and not m.launcher]
    if observed and all(_is_flat(m) for m in observed):
        yield _claim(view, observed)


def _is_flat(member: Member) -> bool:
    course = member.loss_course
    if course is None or (member.loss is not None and member.loss.bad):
        return False
    return (
        course.samples >= MIN_SAMPLES
        and course.last_step - course.first_step >= MIN_STEPS
        and course.span >= MIN_SPAN_S
        and course.lowest > 0.0
        and course.highest_mean - course.lowest_mean <= MAX_MOVED * course.lowest_mean
        and abs(course.first_mean - course.lowest_mean) <= MAX_FALL_AT_FIRST * course.lowest_mean
    )


def _claim(view: JobView, seen: list[Member]) -> Claim:
    courses = [m.loss_course for m in seen if m.loss_course is not None]
    steps = min(c.last_step - c.first_step for c in courses)
    lowest = min(c.lowest_mean for c in courses)
    highest = max(c.highest_mean for c in courses)
    evidence = [
        Evidence(
            "; ".join(
                f"rank {m.who.rank}: means between {c.lowest_mean:.5g} and {c.highest_mean:.5g} from step "
                f"{c.first_step} to {c.last_step}"
                for m, c in zip(seen[:4], courses, strict=False)
            ),
            f"{courses[0].samples} losses",
        )
    ]
    unchanged = _unchanged_parameters(seen)
    if unchanged:
        evidence.append(
            Evidence(f"{unchanged} parameters have not changed at all", "--check-values")
        )
    repeating = find_repeating_members(view)
    if repeating:
        evidence.append(
            Evidence(f"{name_members(repeating)} reads one batch over and over", "DataLoader")
        )
    return Claim(
        summary=f"the loss has stayed at {(lowest + highest) / 2:.3g} since the first steps, for {steps} "
        "steps",
        who=tuple(m.who for m in seen[:8]),
        evidence=tuple(evidence),
        fix="print the learning rate and the norms of the gradients of one step; see that the optimizer has "
        "the parameters of the model that trains, and that labels belong to their inputs",
        severity=Severity.INFO,
        certainty=Certainty.LIKELY,
    )


def _unchanged_parameters(members: list[Member]) -> int:
    """Return how many parameters were compared twice or more and never differed; 0 if any did."""
    digests: dict[int, list[int]] = defaultdict(list)
    for check_ in members[0].checks:
        digests[check_.parameter].append(check_.digest)
    compared = [values for values in digests.values() if len(values) > 1]
    return len(compared) if all(len(set(values)) == 1 for values in compared) else 0


def _example(rank: int = 0, **changes: float) -> Member:
    fields = {
        "samples": 300, "first_step": 1, "last_step": 1500, "span": 90.0, "first_mean": 2.33,
        "lowest": 2.2, "lowest_mean": 2.295, "highest_mean": 2.305,
    }  # fmt: skip
    return sample_member(rank, loss_course=msgspec.convert(fields | changes, LossCourse))


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("loss_course",),
    fires_on={
        "the losses of all ranks stay the same for 1499 steps": (
            sample_job(_example(0), _example(1)),
            "the loss has stayed at 2.3 since the first steps, for 1499 steps",
        ),
        "the loss and the parameters stay the same": (
            sample_job(
                sample_member(
                    0,
                    loss_course=_example().loss_course,
                    checks=tuple(Check(50 * n, n % 2, 7 + n % 2) for n in range(1, 9)),
                ),
                sample_member(1),
            ),
            "the loss has stayed at 2.3 since the first steps, for 1499 steps",
        ),
    },
    silent_on={
        "the loss falls slowly": sample_job(_example(lowest_mean=2.25)),
        "the loss rises": sample_job(_example(highest_mean=2.5)),
        "the loss fell in the first steps": sample_job(_example(first_mean=2.9)),
        "the loss falls on one of two ranks": sample_job(_example(0), _example(1, lowest_mean=1.8)),
        (
            "the loss has stayed the same for 699 steps, as in a warm-up of the learning rate"
        ): sample_job(_example(last_step=700)),
        "the loss has stayed the same for 20 seconds": sample_job(_example(span=20.0)),
        "only 30 losses were seen": sample_job(_example(samples=30)),
        "a policy's loss, which is about 0": sample_job(_example(lowest=-0.2)),
        "one rank has yet to make its first step": sample_job(
            _example(0), sample_member(1, phase=Phase.JOINED)
        ),
        "the loss is NaN, which NUM005 reports": sample_job(
            sample_member(
                0, loss_course=_example().loss_course, loss=Loss(bad=3, step=1500, value="nan")
            )
        ),
        "the job is being ended": sample_job(_example(), ending=True),
        "no loss was seen": sample_job(sample_member(0), sample_member(1)),
    },
    passes=True,
    drill=("flat-loss",),
    relations=Relations(measured=True),
)
