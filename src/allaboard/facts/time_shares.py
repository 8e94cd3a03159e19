"""Shares of a process's time, measured while the job moves, and its progress through its data."""

from __future__ import annotations

import msgspec

from allaboard.facts.bounds import Instant, Measure, Whole
from allaboard.facts.stack import Frame


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """Use of CPU and operations by a process over some time."""

    span: float = 0.0
    """Seconds over which it was measured."""
    cpu: float = 0.0
    """Cores that the process used, with all its threads."""
    allowed: float = 0.0
    """Cores that it may use, by sched_getaffinity(2) and the quota of its control groups; 0 if not known."""
    operation_share: float = 0.0
    """Share of the time in which it was inside an operation (Session.run, a collective)."""
    chief: float = 0.0
    """Share of the time in which that operation was the wait for the chief to initialise."""
    stopped: float = 0.0
    """Share of the time in which a signal had stopped it."""


class Pace(msgspec.Struct, frozen=True):
    """Medians of the last steps of a process, all times in seconds."""

    steps: Whole = 0
    """How many steps these are."""
    step: Measure = 0.0
    """Duration of a whole step."""
    input: Measure = 0.0
    """Time of a step in which the main thread waited for data."""
    sync: Measure = 0.0
    """Time of a step in which the main thread waited for other members."""
    span: Measure = 0.0
    """Seconds over which samples were taken, of whose medians these are the medians; 0 for a single
    sample."""
    low: Measure = 0.0
    """What a step took without the waiting for others in the third of its samples of the last 20 s, from
    below."""
    high: Measure = 0.0
    """The same from above."""

    @property
    def covered_seconds(self) -> float:
        """Seconds that these steps took: the first sample of a span has steps from before it."""
        return max(self.span, self.steps * self.step)

    @property
    def own_time(self) -> float:
        """Time of a step in which it did not wait for others (s)."""
        return max(0.0, self.step - self.sync)


class StepLag(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How far a member is behind the first of those on its host that step together with it.

    It is known where the time that members wait for each other cannot be measured: in calls that return
    before they are over, as those of NCCL do.
    """

    behind: Measure
    """Time by which it ends a step later (s): the median."""
    least: Measure
    """What that is in a quarter of the samples at most (s)."""
    step: Measure
    """Mean duration of a step of all these members (s)."""
    span: Measure
    """Time over which samples were taken (s)."""
    since: Instant
    """Since when one of these members has been behind without interruption."""


_SECONDS = {name: f"{name}_s" for name in ("input", "sync", "checkpoints", "evaluations")}


class Spent(msgspec.Struct, frozen=True, rename=_SECONDS):
    """Time of a process's main thread so far, all in seconds."""

    input: Measure = 0.0
    """Waiting for data, in its steps."""
    sync: Measure = 0.0
    """Waiting for other members, in its steps."""
    checkpoints: Measure = 0.0
    """In checkpoints."""
    evaluations: Measure = 0.0
    """In evaluations."""
    saved: Whole = 0
    """Checkpoints that it began to write."""
    evaluated: Whole = 0
    """Evaluations that it began."""
    now: str = ""
    """What it is in now: "checkpoint", "evaluation"; "" for neither."""


class Batch(msgspec.Struct, frozen=True):
    """One batch of data of which a sample was taken."""

    pass_: Whole
    """Number of the pass through the loader."""
    number: Whole
    """Number of the batch in this pass."""
    rows: Whole = -1
    """Its first dimension; -1 if not known."""
    digest: int = 0
    """Hash of some of its elements; 0 for none."""
    steps: Whole = 0
    """Steps that were done before it."""


class Loop(msgspec.Struct, frozen=True):
    """A place in the user's code that takes batches from a loader."""

    place: Frame
    """The place."""
    pass_: Whole
    """Number of the pass that it is in."""
    batches: Whole
    """Batches that it has taken in this pass so far."""
    ended: Whole = 0
    """Number of the last pass that is over."""
    whole: Whole = 0
    """Batches of that pass; 0 if it was broken off."""
    samples: tuple[Batch, ...] = ()
    """The last batches of which samples were taken."""


class Loss(msgspec.Struct, frozen=True):
    """The values that backward began from, if the last of them are not finite."""

    bad: Whole
    """How many of the last ones are not finite."""
    step: Whole
    """Step of the first of these."""
    value: str
    """That value in words ("nan", "inf", "-inf")."""


class PrintedLoss(msgspec.Struct, frozen=True):
    """The losses that a process prints, if the last of them are not finite."""

    bad: Whole
    """How many of the last ones are not finite."""
    line: str
    """The line with the first of these."""


class LossCourse(msgspec.Struct, frozen=True, kw_only=True):
    """The losses of a process since its first step, as means over 8 to 15 equal parts of them."""

    samples: Whole
    """Losses that were seen; one that repeats the last is not counted."""
    first_step: Whole
    """Step of the first."""
    last_step: Whole
    """Step of the last."""
    span: Measure
    """Seconds between them."""
    first_mean: Measure
    """Mean of the first eight."""
    lowest: Measure
    """The lowest of all."""
    lowest_mean: Measure
    """The lowest mean of a part."""
    highest_mean: Measure
    """The highest mean of a part."""


class Numbered(msgspec.Struct, frozen=True):
    """The numbers that the framework itself gave to steps: TensorFlow 1's global step, as its hooks
    receive it."""

    first_number: Whole
    """The first one of this process."""
    last_number: Whole
    """The last one."""
    falls: Whole = 0
    """How often they went back."""
    high: Whole = -1
    """The number before they last went back; -1 if they never did."""
    low: Whole = -1
    """The number after that; -1 if they never went back."""


class Saves(msgspec.Struct, frozen=True):
    """The checkpoints of a process."""

    saved: Whole = -1
    """Steps that were done when it last wrote one; -1 if it never did."""
    restored: Whole = -1
    """Steps that were done when it last read one; -1 if it never did."""


class Check(msgspec.Struct, frozen=True):
    """A sample of some elements of one parameter, taken after a step."""

    step: Whole
    """The step."""
    parameter: Whole
    """Place of the parameter in the optimizer."""
    digest: int
    """Hash of the elements."""
