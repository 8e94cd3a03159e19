"""A job as a whole, as faces show it: now, and its course. Times of day are ISO 8601 in UTC."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class RunPhase(StrEnum):
    """What the job as a whole does now."""

    STARTING = "starting"
    """Not all members have come to the roll call."""
    RUNNING = "running"
    """The roll call is complete, or nobody waits for it."""
    STALLED = "stalled"
    """Nothing has moved for longer than the job's rhythm explains."""
    ENDING = "ending"
    """It is being ended."""
    ENDED = "ended"
    """No process of it is left."""


class RestartState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All workers, or one task, started again."""

    what: str
    """"round 2", or the task ("ps-0")."""
    reason: str
    """Why, as a sentence."""
    seconds: float | None = None
    """Seconds that it took; absent if not known."""


class RunState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The job as a whole."""

    job: str
    """The job's id."""
    phase: RunPhase
    """What it does now."""
    command: tuple[str, ...] = ()
    """The command of the workers, without passwords."""
    allaboard: str = ""
    """Version of allaboard."""
    framework: str = ""
    """torch, tensorflow or jax; "" if not known yet."""
    world_size: int = 0
    """Members that the job has, as far as is known."""
    ready: int = 0
    """Members that have left the framework's init and live."""
    host: str = ""
    """The host that publishes this."""
    leads: bool = True
    """False if another host decides, so that only this host's members are shown."""
    run_dir: str = ""
    """The run folder on that host."""
    started: str = ""
    """When the run began."""
    elapsed_s: float = 0.0
    """Seconds since then."""
    outcome: str = ""
    """How the run ended: completed, failed, roll-call-failed, hang, interrupted; "" while it runs."""
    reason: str = ""
    """Why it ended or is being ended, as a sentence."""
    status: str = ""
    """Whom or what the job waits for, as a sentence; "" if it moves."""
    silent_s: float = 0.0
    """Seconds since any member last did anything new."""
    stall_after_s: float = 0.0
    """Seconds without progress after which the job counts as stalled."""
    step: int = 0
    """Steps that the member which is furthest behind has done."""
    step_highest: int = 0
    """Steps that the member which is furthest ahead has done."""
    step_s: float | None = None
    """Median duration of a step over the members (s); absent if not known."""
    step_longest_s: float | None = None
    """Duration of a step of the slowest member, without its waiting for others (s); absent if not known."""
    slowest: str = ""
    """That member; "" if not known, or if all are alike."""
    steps_per_s: float = 0.0
    """Median steps per second over the members."""
    loss: float | None = None
    """Median of the members' last losses; absent if not known."""
    waiting: float = 0.0
    """Median share of the last seconds in which members waited for others."""
    input: float = 0.0
    """Median share of the last seconds in which members waited for data."""
    round: int = 0
    """Number of the round: how often all workers were started before."""
    restarts: tuple[RestartState, ...] = ()
    """Everything that was started again."""


class Point(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The job as a whole at one time: one point of its course."""

    elapsed_s: float
    """Seconds since the run began."""
    step: int = 0
    """Steps of the member which is furthest behind."""
    step_s: float | None = None
    """Median duration of a step (s)."""
    step_longest_s: float | None = None
    """Duration of a step of the slowest member, without its waiting for others (s)."""
    steps_per_s: float = 0.0
    """Steps per second."""
    waiting: float = 0.0
    """Median share of waiting for others."""
    loss: float | None = None
    """Median loss."""
    cpu: float = 0.0
    """Cores that all members use together."""
    memory_nbytes: int = 0
    """Resident memory of all members together."""
