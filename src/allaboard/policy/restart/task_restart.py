"""After a task of a job with parameter servers has failed: whether it comes back alone, at its own address,
while the others stay. A function of how it ended before, and of the policy."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from allaboard.analysis.parameter_servers.parameter_servers import (
    SERVER_JOBS,
    TF2_CHIEF,
    has_servers,
)
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
"""The name under which a host tells what its user allowed."""


class TaskEnd(msgspec.Struct, frozen=True, kw_only=True):
    """One end of one task: its cause, and how many steps all who train had done by then."""

    cause: Cause
    total_steps: int


def can_restart_alone(view: JobView, member: Member) -> bool:
    """Whether the others can go on once it is there again. In TensorFlow 1 every session finds its
    servers again, and a worker is nobody's peer. In TensorFlow 2 the chief's coordinator replaces a lost
    worker, but fails with a lost server; then the chief has to begin anew, and all with it."""
    if not (member.task or _elsewhere(view, member)) or member.launcher or not has_servers(view):
        return False
    calls = {m.declared.call for m in view.members if m.declared is not None}
    if TF2_CHIEF not in calls:
        return True
    return member.who.job not in (*SERVER_JOBS, "chief")


def _elsewhere(view: JobView, member: Member) -> bool:
    """Whether it is a task of a job on several hosts, whose agent starts it again at the word of the one that
    decides."""
    return (
        view.leads and member.facts.get(RESTARTS_FACT, RESTART_NOT_ALLOWED) != RESTART_NOT_ALLOWED
    )


def decide_after_task(
    ends: Sequence[TaskEnd], used: int, policy: RestartPolicy
) -> Restart | NoRestart:
    """What is done now that this task has ended for the last of ``ends``; ``used`` starts of any task or
    of all have been made again before."""
    last = ends[-1].cause
    if not policy.allowed:
        return NoRestart(RESTART_NOT_ALLOWED)
    if _same_again(ends):
        return NoRestart(f"{last}, as the time before: it would come every time")
    if count_futile_ends(ends) >= MAX_FUTILE_ROUNDS:
        return NoRestart(
            f"{last}; it came back {MAX_FUTILE_ROUNDS - 1} times, and nobody got a step further"
        )
    if used >= policy.max_restarts:
        times = f"{used} restart{'s' if used != 1 else ''}"
        return NoRestart(f"{last}; {times} used up (--max-restarts {policy.max_restarts})")
    return Restart(
        f"{last}; restart {used + 1} of {policy.max_restarts}",
        restart_delay(policy.backoff, count_futile_ends(ends) - 1),
    )


def _same_again(ends: Sequence[TaskEnd]) -> bool:
    last = ends[-1].cause
    if not last.place:
        return False
    same = (last.error, last.place, last.steps)
    return any((e.cause.error, e.cause.place, e.cause.steps) == same for e in ends[:-1])


def count_futile_ends(ends: Sequence[TaskEnd]) -> int:
    """How many of its last ends in a row came without a step of anybody since the one before; the
    first counts."""
    count = 1
    for earlier, later in zip(reversed(ends[:-1]), reversed(ends[1:]), strict=True):
        if later.total_steps > earlier.done:
            break
        count += 1
    return count
