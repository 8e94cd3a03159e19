"""What follows the failure of a task of a job with parameter servers: it is restarted alone, at its own
address, while the others stay, or it is not. A function of its earlier ends and of the policy."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from allaboard.analysis.parameter_servers import SERVER_JOBS, TF2_CHIEF_CALL, has_parameter_servers
from allaboard.facts import Cause, JobView, Member
from allaboard.policy.restart.attempt_restart import MAX_FUTILE_ROUNDS
from allaboard.policy.restart.restart_policy import (
    RESTART_NOT_ALLOWED,
    NoRestart,
    Restart,
    RestartPolicy,
    restart_delay,
)

RESTARTS_FACT = "restarts"
"""Name of the fact in which a host reports what its user allowed."""


class TaskEnd(msgspec.Struct, frozen=True, kw_only=True):
    """One end of one task."""

    cause: Cause
    total_steps: int
    """Steps that all trainers together had made by then."""


def can_restart_alone(view: JobView, member: Member) -> bool:
    """Return True if the others can go on once the task is there again.

    In TensorFlow 1 every session finds its servers again, and a worker is nobody's peer. In TensorFlow 2 the
    chief's coordinator replaces a lost worker, but fails with a lost server; then the chief has to begin
    anew, and all with it.
    """
    is_restartable = bool(member.task) or _is_restartable_elsewhere(view, member)
    if not is_restartable or member.launcher or not has_parameter_servers(view):
        return False
    calls = {m.declared.call for m in view.members if m.declared is not None}
    if TF2_CHIEF_CALL not in calls:
        return True
    return member.who.job not in (*SERVER_JOBS, "chief")


def _is_restartable_elsewhere(view: JobView, member: Member) -> bool:
    """Return True if the agent of the task's host restarts it at our command, as its user allowed restarts
    too."""
    return (
        view.leads and member.facts.get(RESTARTS_FACT, RESTART_NOT_ALLOWED) != RESTART_NOT_ALLOWED
    )


def decide_after_task(
    ends: Sequence[TaskEnd], used: int, policy: RestartPolicy
) -> Restart | NoRestart:
    """Return whether to restart a task after the last of its ``ends``; ``used`` restarts of any task, or of
    all, were made before."""
    cause = ends[-1].cause
    if not policy.allowed:
        return NoRestart(RESTART_NOT_ALLOWED)
    if _is_repeated_exception(ends):
        return NoRestart(f"{cause}, as the time before: it would fail every time")
    if count_futile_ends(ends) >= MAX_FUTILE_ROUNDS:
        return NoRestart(
            f"{cause}; it was restarted {MAX_FUTILE_ROUNDS - 1} times, and no member made a further step"
        )
    if used >= policy.max_restarts:
        times = f"{used} restart{'s' if used != 1 else ''}"
        return NoRestart(f"{cause}; {times} used up (--max-restarts {policy.max_restarts})")
    return Restart(
        f"{cause}; restart {used + 1} of {policy.max_restarts}",
        # The first end counts as a futile one, and its restart comes at once.
        restart_delay(policy.backoff, count_futile_ends(ends) - 1),
    )


def _is_repeated_exception(ends: Sequence[TaskEnd]) -> bool:
    """Return True if the task raised the same exception at the same line after the same steps before."""
    last_cause = ends[-1].cause
    if not last_cause.place:
        return False
    signature = (last_cause.error, last_cause.place, last_cause.steps)
    return any((e.cause.error, e.cause.place, e.cause.steps) == signature for e in ends[:-1])


def count_futile_ends(ends: Sequence[TaskEnd]) -> int:
    """Return how many of the task's last ends in a row came without a step of any member since the end
    before; the first end counts."""
    count = 1
    for earlier, later in zip(reversed(ends[:-1]), reversed(ends[1:]), strict=True):
        if later.total_steps > earlier.total_steps:
            break
        count += 1
    return count
