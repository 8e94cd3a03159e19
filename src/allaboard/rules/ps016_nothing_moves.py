"""All training tasks wait, and no worker or server does anything.

## Why it matters
In an asynchronous job no member waits for another, so none is missed. If the workers' input does not arrive
(a file on a mount that hangs, a pipe, a queue that no thread fills), the chief stays in `join`, or a worker
in `Session.run`, forever and without a message.

TensorFlow 2's chief waits for the functions that its workers run; a TensorFlow 1 worker waits in its own
`Session.run`. Both wait until the job is ended.

## What to do
Look at what the workers wait for: `py-spy dump --native --pid PID` shows the threads of TensorFlow that read
(`read`, `openat`) below Python. If the input is a `py_function` or a generator, the finding gives its line.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.member_names import command_on_host, name_members
from allaboard.analysis.parameter_servers import (
    AUXILIARY_JOBS,
    AWAIT_CHIEF_OP,
    COORDINATOR_JOIN_OP,
    SESSION_CREATION_OPS,
    chief_task,
    describe_exit,
    find_task,
    has_lost_server,
    has_parameter_servers,
    only_serves,
    task_name,
    training_members,
    wait_verb,
)
from allaboard.analysis.stacks.stack_classifier import classify_stack
from allaboard.analysis.stalls.stall import (
    MIN_STILL_SAMPLES,
    MOVING_BYTES_PER_S,
    member_waits_for_peers,
)
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Frame, JobView, Severity
from allaboard.facts.member import Exit, Member, Op, Phase
from allaboard.facts.samples import SERVING, USER, ps_member, sample_stack, stalled_job

MIN_STILL_S = 45.0
"""Seconds without progress: a slow service leaves no trace either, and TensorFlow sleeps for 30 s between two
checks whether its chief has initialized."""
IDLE_CORES = 0.02
"""Cores that an idle process of TensorFlow may use for its heartbeats and our sampling."""


def check(view: JobView) -> Iterator[Claim]:
    if not has_parameter_servers(view) or view.ending or view.now - view.progress_at < MIN_STILL_S:
        return
    training = [m for m in training_members(view) if m.alive]
    if not training or has_lost_server(view) or any(_has_failed(m) for m in view.members):
        return
    # PS004 reports a synchronous worker that waits for one that has exited.
    if any("synchronous" in m.notes for m in training) and len(training) < len(
        training_members(view)
    ):
        return
    around = [m for m in view.alive if m.who.job not in AUXILIARY_JOBS and not m.launcher]
    if all(_waits_without_end(view, m) for m in training) and all(_is_idle(m) for m in around):
        yield _claim(view, training)


def _has_failed(member: Member) -> bool:
    return member.exit is not None and member.exit.code != 0


def _waits_without_end(view: JobView, member: Member) -> bool:
    """Return True if it waits in an operation that does not end by itself and that no other rule reports."""
    if (
        member.phase < Phase.JOINED
        or member.phase is Phase.LEAVING
        or not member_waits_for_peers(member)
    ):
        return False
    operation = member.op.name if member.op is not None else ""
    if operation == AWAIT_CHIEF_OP:
        chief = find_task(view, *chief_task(view))
        return chief is not None and not chief.alive
    return operation not in (*SESSION_CREATION_OPS, COORDINATOR_JOIN_OP)


def _is_idle(member: Member) -> bool:
    """Return True if several samples found it idle: no CPU, and nothing read, written, sent or received."""
    was_sampled = member.stack is not None and member.stack.samples >= MIN_STILL_SAMPLES
    return (
        was_sampled
        and member.os_state == "S"
        and member.cpu < IDLE_CORES
        and max(member.io, member.traffic) < MOVING_BYTES_PER_S
    )


def _claim(view: JobView, training: list[Member]) -> Claim:
    idle = view.now - view.progress_at
    first_training = training[0]
    feeders = [m for m in view.alive if m.stack is not None and m.stack.fed_by]
    serving = [m for m in view.alive if only_serves(m)]
    workers = [m for m in serving if m.who.job == "worker"]
    at_fault = (feeders or workers or training)[0]
    ended = [m for m in training_members(view) if m.exit is not None]
    return Claim(
        summary=f"no progress: {name_members(training)} {wait_verb(training)} in "
        f"{_describe_position(first_training)}{_describe_input(feeders)}, and "
        "no worker or server computes, reads or sends anything",
        who=tuple(m.who for m in training),
        evidence=(
            *(
                Evidence(f"{task_name(m)}: in {_describe_position(m)}", "black box, stacks")
                for m in training[:3]
            ),
            Evidence(
                f"{name_members(serving)}: at most {max((m.cpu for m in serving), default=0.0):.2f} cores",
                "/proc",
            ),
            *(
                Evidence(f"{task_name(m)} {describe_exit(m.exit)}", "wait status")
                for m in ended[:2]
                if m.exit is not None
            ),
            Evidence(f"no progress for {idle:.0f} s", "black box"),
        ),
        fix=command_on_host(view, at_fault, f"py-spy dump --native --pid {at_fault.who.pid}")
        + f"   # what {task_name(at_fault)} waits for",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        since=view.progress_at,
    )


def _describe_position(member: Member) -> str:
    activity = (
        member.op.name
        if member.op is not None
        else str(classify_stack(member.stack)).removeprefix("in ")
    )
    user_frame = member.stack.user if member.stack is not None else None
    return activity + (f" at {user_frame}" if user_frame is not None else "")


def _describe_input(feeders: list[Member]) -> str:
    """Return the line of the user's Python code that produces the input, if there is one, else ""."""
    for feeder in feeders:
        user_frame = (
            next((f for f in feeder.stack.fed_by if f.is_user), None) if feeder.stack else None
        )
        if user_frame is not None:
            return f", the input of {task_name(feeder)} is at {user_frame}"
    return ""


_JOIN = Op("ClusterCoordinator.join", 600, 30.0)
_RUN = Op("Session.run", 41, 30.0)
_INSIDE = Frame("/v/site-packages/tensorflow/python/client/session.py", 1400, "_call_tf_sessionrun")
_SERVES = Frame("/v/site-packages/tensorflow/python/training/server_lib.py", 185, "join")
_SLEEPS = Frame("/home/u/train.py", 19, "read", "time.sleep(1000)")
_LONG = {"progress_at": 50.0}
_CHIEF = ps_member("chief", 0, op=_JOIN, stack=sample_stack(USER), number=3)
_SERVER = {"op": SERVING, "stack": sample_stack(_SERVES, USER)}
_PS = ps_member("ps", 0, **_SERVER)
_WORKER = ps_member("worker", 0, **_SERVER)
_READER = ps_member("worker", 0, op=_RUN, stack=sample_stack(_INSIDE, USER))
_FED = msgspec.structs.replace(
    _READER, stack=msgspec.structs.replace(sample_stack(_INSIDE, USER), fed_by=(_SLEEPS,))
)
_DONE = ps_member("worker", 1, exit=Exit(ended_at=60.0, code=0))
_CLOSED = Op(COORDINATOR_JOIN_OP, 700, 30.0)
RULE = Rule(
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "the input of a TensorFlow 2 worker has not arrived for 50 seconds": (
            stalled_job(_CHIEF, _WORKER, _PS, **_LONG),
            "no progress: chief 0 waits in ClusterCoordinator.join at train.py:41 in train, and no worker "
            "or server computes, reads or sends anything",
        ),
        "the input of a TensorFlow 1 worker comes from Python code that sleeps": (
            stalled_job(_FED, _DONE, _PS, **_LONG),
            "no progress: worker 0 waits in Session.run at train.py:41 in train, the input of worker 0 is "
            "at train.py:19 in read, and no worker or server computes, reads or sends anything",
        ),
    },
    silent_on={
        "nothing has moved for 30 seconds": stalled_job(_CHIEF, _WORKER, _PS, progress_at=70.0),
        "the stack of a worker was not sampled": stalled_job(
            _CHIEF, ps_member("worker", 0, op=SERVING), _PS, **_LONG
        ),
        "a worker uses the CPU, as when it compiles": stalled_job(
            _CHIEF, ps_member("worker", 0, cpu=0.4, **_SERVER), _PS, **_LONG
        ),
        "a worker reads 9 kB a second": stalled_job(
            _CHIEF, ps_member("worker", 0, io=9e3, **_SERVER), _PS, **_LONG
        ),
        "a worker downloads 9 kB a second": stalled_job(
            _CHIEF, ps_member("worker", 0, traffic=9e3, **_SERVER), _PS, **_LONG
        ),
        "a worker is in uninterruptible sleep in the kernel": stalled_job(
            _CHIEF, ps_member("worker", 0, os_state="D", **_SERVER), _PS, **_LONG
        ),
        "the chief is in its own code, and waits for no worker": stalled_job(
            ps_member("chief", 0, stack=sample_stack(USER), number=3), _WORKER, _PS, **_LONG
        ),
        "the server was killed, which PS001 reports": stalled_job(
            _CHIEF, _WORKER, ps_member("ps", 0, exit=Exit(ended_at=50.0, signal=9)), **_LONG
        ),
        "the last worker closes its session": stalled_job(
            ps_member("worker", 0, op=_CLOSED, stack=sample_stack(_INSIDE, USER)),
            _DONE,
            _PS,
            **_LONG,
        ),
        "all workers have exited": stalled_job(_DONE, _PS, **_LONG),
        "a worker waits in a job without parameter servers": stalled_job(_READER, **_LONG),
        "a synchronous worker waits for one that has exited, which PS004 reports": stalled_job(
            msgspec.structs.replace(_READER, notes={"synchronous": "2 of 2"}), _DONE, _PS, **_LONG
        ),
    },
    passes=True,
    drill=("tf2-ps-input",),
)
