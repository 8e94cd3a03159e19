"""How a process spent its time, measured while the job moves, and how it went through its data."""

from __future__ import annotations

import msgspec

from allaboard.facts.stack import Frame


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """Over ``span`` s: ``cpu`` in cores of the process with all its threads, ``allowed`` the cores that
    it may use (sched_getaffinity(2) and the quota of its control groups, 0 where not known), ``inside``
    the share of the time in which it was inside an operation (Session.run, a collective), ``chief`` the
    part of it in which that was the wait for the chief to initialise; ``stopped`` the share in which it was
    stopped by a signal."""

    span: float = 0.0
    cpu: float = 0.0
    allowed: float = 0.0
    inside: float = 0.0
    chief: float = 0.0
    stopped: float = 0.0


class Pace(msgspec.Struct, frozen=True):
    """Medians of its last ``steps`` steps (s): the whole ``step``, and of it the time in which the main
    thread waited for data (``input``) and for other members (``sync``). ``span``: seconds over which such
    looks were taken, of which these are the medians again. ``low`` and ``high``: what a step took without the
    waiting for others in the third of its looks of the last 20 s, from below and from above."""

    steps: int = 0
    step: float = 0.0
    input: float = 0.0
    sync: float = 0.0
    span: float = 0.0
    low: float = 0.0
    high: float = 0.0

    @property
    def seen(self) -> float:
        """Seconds that these steps took: the first look of a span has steps from before it."""
        return max(self.span, self.steps * self.step)

    @property
    def own(self) -> float:
        """Of a step, what it did not wait for others (s)."""
        return max(0.0, self.step - self.sync)


class Spent(msgspec.Struct, frozen=True):
    """Of its main thread's time so far (s): waiting for data (``input``) and for other members (``sync``) in
    its steps; in ``checkpoints`` and ``evaluations``, of which it began ``saved`` and ``evaluated``. ``now``
    is the one that it is in ("checkpoint", "evaluation"), "" for none."""

    input: float = 0.0
    sync: float = 0.0
    checkpoints: float = 0.0
    evaluations: float = 0.0
    saved: int = 0
    evaluated: int = 0
    now: str = ""


class Batch(msgspec.Struct, frozen=True):
    """One batch that was looked at: the ``number``-th of this pass through a loader; ``rows`` its first
    dimension, -1 where not known; ``digest`` of some of its elements, 0 for none; ``steps`` that were done
    before it."""

    pass_: int
    number: int
    rows: int = -1
    digest: int = 0
    steps: int = 0


class Loop(msgspec.Struct, frozen=True):
    """A place that takes batches. Now in pass ``pass_``, ``batches`` so far; pass ``ended`` was the last
    that is over, with ``whole`` batches (0: broken off). ``samples`` are the last that were looked at."""

    place: Frame
    pass_: int
    batches: int
    ended: int = 0
    whole: int = 0
    samples: tuple[Batch, ...] = ()


class Loss(msgspec.Struct, frozen=True):
    """The values that backward began from: the last ``bad`` of them were not finite, the first of these
    in ``step``; ``value`` is that one in words ("nan", "inf", "-inf")."""

    bad: int
    step: int
    value: str


class Numbered(msgspec.Struct, frozen=True):
    """The numbers that the framework itself gave to steps (TensorFlow 1's global step, as its hooks were
    told it): the ``first`` of this process and the ``last``; they went back ``falls`` times, the last time
    from ``high`` to ``low``."""

    first: int
    last: int
    falls: int = 0
    high: int = -1
    low: int = -1


class Saves(msgspec.Struct, frozen=True):
    """Checkpoints: the steps that were done when this process last wrote one (``saved``), and when it last
    read one (``restored``); -1 where it never did."""

    saved: int = -1
    restored: int = -1


class Check(msgspec.Struct, frozen=True):
    """A look at some elements of one parameter of the optimizer (by its place there) after a step."""

    step: int
    parameter: int
    digest: int
