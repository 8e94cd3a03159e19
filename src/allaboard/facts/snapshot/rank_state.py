"""One process of a job, as faces show it."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from allaboard.facts.snapshot.tracker_run import TrackerRun
from allaboard.facts.usage import DeviceMemory


class Activity(StrEnum):
    """What a rank does now, in one word; each has a colour and a letter in every face."""

    STARTING = "starting"
    """The process exists; its code has not begun."""
    IMPORTING = "importing"
    """It imports its framework."""
    OWN_CODE = "own-code"
    """It runs the user's own code before the framework's init, or for longer than a step takes."""
    AT_GATE = "at-gate"
    """It is held at the framework's init until the roll call is complete."""
    JOINING = "joining"
    """It is inside the framework's own init."""
    JOINED = "joined"
    """It has left init and done no step yet."""
    TRAINING = "training"
    """It does steps."""
    WAITING = "waiting"
    """It has been inside one operation with others for longer than a moment."""
    CHECKPOINT = "checkpoint"
    """It writes a checkpoint."""
    EVALUATION = "evaluation"
    """It evaluates."""
    SERVING = "serving"
    """It is a parameter server, or a worker that computes what a chief sends."""
    STOPPED = "stopped"
    """A signal has stopped it, or a debugger holds it."""
    LEAVING = "leaving"
    """Its interpreter is shutting down."""
    DONE = "done"
    """It has ended with exit code 0."""
    ENDED = "ended"
    """allaboard has ended it, or passed on the user's signal."""
    FAILED = "failed"
    """It has ended otherwise."""
    LOST = "lost"
    """Its host is no longer heard from."""


class RankState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One process of the job."""

    name: str
    """Its name for people: "worker 1", "ps 0", "pid 4711"."""
    activity: Activity
    """What it does now."""
    phase: str = ""
    """Name of the phase that it has reached: launched, started, importing, imported, arrived, joining,
    joined, training, leaving."""
    rank: int = -1
    """Its rank; -1 if not known."""
    job: str = "worker"
    """Job of the task: worker, ps, chief, evaluator."""
    index: int = -1
    """Index within that job; -1 if not known."""
    host: str = ""
    """Its host; "" if not known."""
    pid: int = 0
    """Its pid; 0 if no process was ever seen."""
    step: int = 0
    """Steps that it has done."""
    step_s: float | None = None
    """Median duration of its last steps (s); absent if not known."""
    steps_per_s: float = 0.0
    """Steps per second now; 0 if it does none."""
    loss: float | None = None
    """Its last loss; absent if not known."""
    loss_text: str = ""
    """Its last loss if that is no finite number, which JSON has no number for ("nan", "inf")."""
    waiting: float = 0.0
    """Share of the last seconds in which it waited for other members."""
    input: float = 0.0
    """Share of the last seconds in which it waited for data."""
    operation: str = ""
    """The operation with others that it is inside of; "" for none."""
    operation_s: float = 0.0
    """Seconds for which it has been inside of it."""
    waits_for: tuple[str, ...] = ()
    """Names of the first members that have not come to that operation."""
    waits_for_count: int = 0
    """How many have not come to it."""
    awaited_by: int = 0
    """How many members wait for this one."""
    file: str = ""
    """File of the line of the user's code where it stands; "" if not known."""
    line: int = 0
    """The line, from 1; 0 if not known."""
    function: str = ""
    """The function."""
    silent_s: float = 0.0
    """Seconds since it last did anything new."""
    cpu: float = 0.0
    """Cores that it uses."""
    cores: float = 0.0
    """Cores that it may use; 0 if not known."""
    memory_nbytes: int = 0
    """Its resident memory; 0 if not known."""
    queued: float = 0.0
    """Share of the last seconds in which its main thread waited for a core."""
    threads: int = 0
    """Its threads; 0 if not known."""
    open_files: int = 0
    """Files and sockets that it has open; 0 if not known."""
    open_files_limit: int = 0
    """How many it may have open; 0 if there is no limit, or it is not known."""
    gpu_memory_nbytes: int | None = None
    """Memory that it holds on GPUs; absent if not known."""
    device_memory: DeviceMemory | None = None
    """Its memory on an accelerator as its framework counts it; absent if not known."""
    received_per_s: float = 0.0
    """Bytes per second that it receives from other tasks, if that is measured."""
    sent_per_s: float = 0.0
    """Bytes per second that it sends to other tasks, if that is measured."""
    state: str = ""
    """The kernel's letter (R, S, D, T, t, Z); "" once it has ended."""
    end: str = ""
    """How it ended: "exit code 1", "SIGKILL"; "" while it lives."""
    round: int = 0
    """How many inits it has been through."""
    trackers: tuple[TrackerRun, ...] = ()
    """Runs of experiment trackers that it had open at its first step."""
