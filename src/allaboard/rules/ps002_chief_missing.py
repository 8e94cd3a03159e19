"""Workers wait for the chief to initialize the variables, but it does not.

## Why it matters
In TensorFlow 1 a single task initializes the variables: `chief 0`, or `worker 0` if the cluster has no chief.
The others check whether it has done so, sleep 30 s (`recovery_wait_secs`), and check again, forever and
without a message. The servers are up but idle.

These workers wait only for the chief, until it has initialized the variables, and up to 30 s more, because
they check only that often. That last wait alone is normal and is not reported.

## What to do
Look at the line where the chief is, which the finding names. If it starts from a large checkpoint, or loads
data first, let it create its session before that.

To check more often than every 30 s, create the session with `SessionManager(recovery_wait_secs=1)`, or wait
in the script until `tf.report_uninitialized_variables()` is empty, as examples/tf1_ps_digits.py does.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.member_names import command_on_host, name_members
from allaboard.analysis.parameter_servers import (
    AWAIT_CHIEF_OP,
    SESSION_CREATION_OPS,
    chief_task,
    describe_activity,
    find_task,
    has_parameter_servers,
    wait_verb,
)
from allaboard.analysis.stalls.stall import MIN_STUCK_S, is_stuck_idle
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Exit, JobView, Member, Op, Phase
from allaboard.facts import Severity as S
from allaboard.facts.samples import USER, ps_member, sample_job, sample_stack

MIN_WAIT_S = 10.0
"""Seconds that workers must wait before it is reported, since an initialization takes less than one;
MIN_STUCK_S if the chief does not move."""


def check(view: JobView) -> Iterator[Claim]:
    if not has_parameter_servers(view) or view.ending:
        return
    waiting = [m for m in view.alive if m.op is not None and m.op.name == AWAIT_CHIEF_OP]
    if not waiting:
        return
    since = min(m.op.since for m in waiting if m.op is not None)
    task_name = chief_task(view)
    chief = find_task(view, *task_name)
    if chief is not None and chief.exit is not None and chief.exit.ours:
        return  # allaboard ended it, for a reason that is reported
    min_wait = MIN_STUCK_S if chief is not None and is_stuck_idle(view, chief) else MIN_WAIT_S
    if view.now - since < min_wait or _has_begun(chief) or _has_finished(chief):
        return
    yield _claim(view, waiting, since, task_name, chief)


def _has_begun(chief: Member | None) -> bool:
    """Return True if the chief has begun: it trains, it computes, or it is creating its session (where it may
    wait for a server, which has a rule of its own)."""
    if chief is None or not chief.alive or chief.is_stopped:
        return False
    return (
        chief.step > 0
        or chief.cpu > 0.5
        or (chief.op is not None and chief.op.name in SESSION_CREATION_OPS)
    )


def _has_finished(chief: Member | None) -> bool:
    """Return True if the chief has trained and exited with code 0: the variables are on the servers, and the
    others notice at their next check."""
    return chief is not None and chief.step > 0 and chief.exit is not None and chief.exit.code == 0


def _claim(
    view: JobView, waiting: list[Member], since: float, task_name: tuple[str, int],
    chief: Member | None,
) -> Claim:  # fmt: skip
    chief_name = f"{task_name[0]} {task_name[1]}"
    is_dead = chief is None or not chief.alive
    evidence = [
        Evidence(
            f"{name_members(waiting)} in wait_for_session for {view.now - since:.0f} s", "black box"
        ),
        Evidence(
            f"{chief_name}: {describe_activity(chief)}",
            "process" if chief is not None else "cluster",
        ),
    ]
    user_frame = chief.stack.user if chief is not None and chief.stack is not None else None
    if user_frame is not None and user_frame.text:
        evidence.append(Evidence(user_frame.text, f"{user_frame.file}:{user_frame.line}"))
    return Claim(
        summary=f"{name_members(waiting)} {wait_verb(waiting)} for {chief_name} to initialize the variables: "
        f"{describe_activity(chief)}",
        who=(chief.who,) if chief is not None else (),
        evidence=tuple(evidence),
        fix=f"start {chief_name}"
        if is_dead or chief is None
        else command_on_host(view, chief, f"py-spy dump --pid {chief.who.pid}"),
        severity=S.ERROR if is_dead else S.WARNING,
        certainty=Certainty.LIKELY,
        since=since,
    )


_WAIT = Op("SessionManager.wait_for_session", 1, 80.0)
_SOON = Op("SessionManager.wait_for_session", 1, 95.0)
_EARLY = {"phase": Phase.IMPORTED, "declared": None, "step": 0, "ops": 0, "os_state_since": 99.9}
RULE = Rule(
    reads=JobView,
    check=check,
    needs=("op",),
    fires_on={
        "a worker has waited for 20 seconds for a chief that is still in its own code": (
            sample_job(
                ps_member("chief", 0, number=3, **_EARLY),
                ps_member("worker", 0, op=_WAIT, step=0),
                ps_member("ps", 0),
            ),
            "worker 0 waits for chief 0 to initialize the variables: it is alive, in its own code",
        ),
        "a worker has waited for 5 seconds for a chief that does not move": (
            sample_job(
                ps_member("chief", 0, number=3, stack=sample_stack(USER), **_EARLY),
                ps_member("worker", 0, op=_SOON, step=0),
                ps_member("ps", 0),
            ),
            "worker 0 waits for chief 0 to initialize the variables: it is at train.py:41 in train",
        ),
        "worker 0 is the chief, and was killed before it initialized the variables": (
            sample_job(
                ps_member("worker", 0, exit=Exit(ended_at=70.0, signal=9), step=0),
                ps_member("worker", 1, op=_WAIT, step=0),
                ps_member("ps", 0),
            ),
            "worker 1 waits for worker 0 to initialize the variables: it was killed by SIGKILL",
        ),
    },
    silent_on={
        "the chief trains, and a worker checks for the variables every 30 seconds": sample_job(
            ps_member("worker", 0), ps_member("worker", 1, op=_WAIT, step=0), ps_member("ps", 0)
        ),
        "the chief has finished, and a worker checks for the variables every 30 seconds": sample_job(
            ps_member("worker", 0, exit=Exit(ended_at=85.0, code=0)),
            ps_member("worker", 1, op=_WAIT, step=0),
            ps_member("ps", 0),
        ),
        "allaboard ended the chief after a parameter server had failed": sample_job(
            ps_member("worker", 0, exit=Exit(ended_at=97.0, signal=15, ours=True), step=30),
            ps_member("worker", 1, op=_WAIT, step=0),
            ps_member("ps", 0, exit=Exit(ended_at=95.0, code=9)),
        ),
        "a worker has waited for the chief for 5 seconds": sample_job(
            ps_member("worker", 0, step=0),
            ps_member("worker", 1, op=_SOON, step=0),
            ps_member("ps", 0),
        ),
        "the chief still downloads its data": sample_job(
            ps_member("chief", 0, number=3, stack=sample_stack(USER), traffic=3e5, **_EARLY),
            ps_member("worker", 0, op=_SOON, step=0),
            ps_member("ps", 0),
        ),
        "the chief uses the CPU, as when it restores a large checkpoint": sample_job(
            ps_member("worker", 0, step=0, cpu=0.9),
            ps_member("worker", 1, op=_WAIT, step=0),
            ps_member("ps", 0),
        ),
    },
    drill=("ps-no-chief",),
)
