"""A session or strategy cannot start because a task that it needs is not running.

## Why it matters
The chief opens its session on every server at once. While one is missing, TensorFlow 1 repeats `CreateSession
still waiting for response from worker: /job:ps/replica:0/task:1` every ten seconds (a line of level INFO,
hidden by `TF_CPP_MIN_LOG_LEVEL`), and TensorFlow 2's chief prints nothing. Without `device_filters`,
TensorFlow 1 waits for the other workers too.

The chief waits forever for the named task, and every other worker for the chief. Nothing that the waiting
processes do can change it.

## What to do
Start the missing task, or fix what ended it. If the missing task is a worker, give each session
`tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:N"])`: it then starts without the other
workers.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.parameter_servers import (
    SESSION_CREATION_OPS,
    describe_activity,
    find_task,
    task_name,
)
from allaboard.analysis.stalls.stall import MIN_STUCK_S, is_stuck_idle
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Exit, JobView, Member, Op, Phase
from allaboard.facts.samples import USER, ps_member, sample_job, sample_stack

MIN_WAIT_S = 10.0
"""Seconds in the creation of a session before it is reported, since a healthy one takes less than one;
MIN_STUCK_S if the missing task does not move."""
BUSY_CORES = 0.5
"""Cores: a process that computes restores or initializes, and does not wait."""


def check(view: JobView) -> Iterator[Claim]:
    for waiting_member in view.alive:
        declaration = waiting_member.declared
        if (
            waiting_member.op is None
            or waiting_member.op.name not in SESSION_CREATION_OPS
            or declaration is None
            or waiting_member.cpu > BUSY_CORES
        ):
            continue
        if view.now - waiting_member.op.since < MIN_STUCK_S:
            continue
        absent = [
            t
            for t in declaration.cluster
            if _is_absent(view, t) and not _is_restarting(view, t, waiting_member.op)
        ]
        if view.now - waiting_member.op.since < MIN_WAIT_S:
            absent = [t for t in absent if _is_stuck(view, t)]
        servers = [t for t in absent if t.startswith("ps:")]
        if absent:
            yield _claim(view, waiting_member, servers or absent, waiting_member.op.since)


def _find_newest(view: JobView, listed: str) -> Member | None:
    """Return the newest process of the task with this name in the cluster, or None."""
    job_name, _, index = listed.partition(":")
    return find_task(view, job_name, int(index))


def _is_absent(view: JobView, listed: str) -> bool:
    """Return True if no process serves as this task of the cluster."""
    newest = _find_newest(view, listed)
    return newest is None or not newest.alive or newest.phase < Phase.JOINED


def _is_stuck(view: JobView, listed: str) -> bool:
    newest = _find_newest(view, listed)
    return newest is not None and is_stuck_idle(view, newest)


def _is_restarting(view: JobView, listed: str, session: Op) -> bool:
    """Return True if this task was restarted while the session was waiting: it is about to serve."""
    newest = _find_newest(view, listed)
    if newest is None or not newest.alive or newest.started_at < session.since:
        return False
    return view.now - newest.started_at < RESTART_S


RESTART_S = 60.0
"""Seconds in which a restarted task has imported TensorFlow, even on a busy machine."""


def _claim(view: JobView, member: Member, absent: list[str], since: float) -> Claim:
    tasks = [(t.replace(":", " "), _find_newest(view, t)) for t in absent]
    assert member.declared is not None
    activities = "; ".join(f"{called}: {describe_activity(newest)}" for called, newest in tasks[:4])
    return Claim(
        summary=f"{task_name(member)} cannot create its session: {', '.join(c for c, _ in tasks)} "
        + ("are not serving" if tasks[1:] else "is not serving"),
        who=tuple(newest.who for _, newest in tasks if newest is not None),
        evidence=(
            Evidence(
                f"{task_name(member)} has been creating its session for {view.now - since:.0f} s, idle",
                "black box",
            ),
            Evidence(activities, "processes"),
            Evidence(member.declared.cluster[absent[0]], f"{absent[0]} in its cluster"),
        ),
        fix=_fix(member, absent),
        certainty=Certainty.LIKELY,
        since=since,
    )


def _fix(member: Member, absent: list[str]) -> str:
    """Return what to do: start the task; for a missing worker also how to start without it."""
    assert member.declared is not None
    start = f"start {absent[0].replace(':', ' ')} at {member.declared.cluster[absent[0]]}"
    if not all(t.startswith("worker:") for t in absent):
        return start
    own_task = f"/job:{member.who.job}/task:{member.who.index}"
    return (
        f"{start}; or let sessions wait for the servers alone: MonitoredTrainingSession(config="
        f"tf.ConfigProto(device_filters=['/job:ps', '{own_task}']))"
    )


_MAKES = Op("SessionManager.prepare_session", 1, 80.0)
_SOON = Op("SessionManager.prepare_session", 1, 95.0)
RULE = Rule(
    reads=JobView,
    check=check,
    needs=("op",),
    fires_on={
        "a parameter server exited before it served": (
            sample_job(
                ps_member("worker", 0, op=_MAKES, step=0),
                ps_member("ps", 0, exit=Exit(ended_at=60.0, code=1), phase=Phase.IMPORTED),
                ps_member("worker", 1, step=0),
            ),
            "worker 0 cannot create its session: ps 0 is not serving",
        ),
        "a parameter server stands still in its own code before it serves": (
            sample_job(
                ps_member("worker", 0, op=_SOON, step=0),
                ps_member(
                    "ps", 0, phase=Phase.IMPORTED, os_state_since=99.0, stack=sample_stack(USER)
                ),
            ),
            "worker 0 cannot create its session: ps 0 is not serving",
        ),
        "another worker has ended, and the session has no device filters": (
            sample_job(
                ps_member("worker", 0, op=_MAKES, step=0),
                ps_member("ps", 0),
                ps_member("worker", 1, exit=Exit(ended_at=60.0, code=0)),
            ),
            "worker 0 cannot create its session: worker 1 is not serving",
        ),
        "a parameter server has been asleep for 3.5 seconds before it serves": (
            sample_job(
                ps_member("worker", 0, op=_SOON, step=0),
                ps_member("ps", 0, phase=Phase.IMPORTED, os_state_since=96.5),
            ),
            "worker 0 cannot create its session: ps 0 is not serving",
        ),
    },
    silent_on={
        "all tasks of the cluster are running": sample_job(
            ps_member("worker", 0, op=_MAKES, step=0),
            ps_member("worker", 1, step=0),
            ps_member("ps", 0),
        ),
        "the worker uses the CPU, as when it restores a large checkpoint": sample_job(
            ps_member("worker", 0, op=_MAKES, step=0, cpu=1.0),
            ps_member("ps", 0, exit=Exit(ended_at=60.0, code=1)),
        ),
        "a parameter server is being restarted": sample_job(
            ps_member("worker", 0, op=_MAKES, step=0),
            ps_member("worker", 1, step=0),
            ps_member("ps", 0, started_at=85.0, phase=Phase.IMPORTING),
        ),
        "a worker has waited for 5 seconds for a server that has slept for 2.5 seconds": sample_job(
            ps_member("worker", 0, op=_SOON, step=0),
            ps_member("ps", 0, phase=Phase.IMPORTED, os_state_since=97.5),
        ),
        "a worker has waited for 5 seconds for a server that is starting": sample_job(
            ps_member("worker", 0, op=_SOON, step=0),
            ps_member("ps", 0, phase=Phase.IMPORTED, os_state_since=99.9),
        ),
    },
    drill=("ps-missing",),
)
