"""When to end the rest of a job because some members have ended: failed, or finished their work."""

from __future__ import annotations

from allaboard.analysis.failures.failure_causality import order_failures
from allaboard.analysis.member_names import name_members
from allaboard.analysis.parameter_servers import (
    can_go_on_without,
    leftover_members,
    uninterrupted_trainers,
)
from allaboard.analysis.stalls.expected_pauses import PAUSED_CORES
from allaboard.analysis.stalls.stall import MOVING_BYTES_PER_S
from allaboard.facts import JobView, Member, Outcome
from allaboard.policy.end.end_policy import EndPolicy, Verdict
from allaboard.policy.restart.task_restart import can_restart_alone

SURVIVOR_GRACE_S = 5.0
"""Time that members have after the failure of another one to end by themselves and report what they met."""
STUCK_IN_EXIT_S = 20.0
"""Time from an uncaught exception until an idle member counts as stuck in its own exit (JAX waits 300 s
there, in a barrier of all processes)."""
LAST_EVALUATION_GRACE_S = 60.0
"""Time that an evaluator has after the training to end by itself."""


def failure_verdict(view: JobView, policy: EndPolicy) -> Verdict | None:
    """Decide to end the job if a member failed after the start and the others had their time to end.

    If it is to be restarted, every second of the others is lost, so it is ended at once.
    """
    if not policy.ends_survivors or (view.rolled_at is None and not policy.restarts):
        return None
    order = order_failures(view)
    failed = [m for m in order.root_failures + order.consequences if _ends_job(view, m, policy)]
    # Members that fall as a consequence need seconds to report it; ended at once, they would all look guilty.
    ended = [m for m in failed if m.exit is not None]
    if ended and view.now - min(_exited_at(m) for m in ended) >= SURVIVOR_GRACE_S:
        culprit = min(ended, key=_exited_at)
    elif (
        failed
        and failed[0] in order.root_failures
        and _has_certainly_failed(view, failed[0], policy)
    ):
        culprit = failed[0]
    else:
        return None
    return Verdict(Outcome.FAILED, f"{culprit.who.name} failed; ending the others")


def stuck_failure(view: JobView, policy: EndPolicy) -> Member | None:
    """Return the first member that raised by itself, has not exited since, and whose failure ends the job;
    None if there is none. A job that stands still behind it does not hang: it has failed."""
    root_failures = order_failures(view).root_failures
    return next((m for m in root_failures if m.exit is None and _ends_job(view, m, policy)), None)


def _ends_job(view: JobView, member: Member, policy: EndPolicy) -> bool:
    """Return True if the job cannot go on after the failure of this member."""
    return not (
        is_restarted_alone(view, member, policy)
        or can_go_on_without(view, member)
        or _has_live_launcher(view, member)
    )


def is_restarted_alone(view: JobView, member: Member, policy: EndPolicy) -> bool:
    """Return True if the member is restarted alone, so that its end is not that of the job."""
    return policy.restarts and can_restart_alone(view, member)


def _has_live_launcher(view: JobView, member: Member) -> bool:
    """Return True if the process that started the member lives and decides: a sweep goes on with its next
    training."""
    return any(m.launcher and m.worker == member.worker for m in view.alive)


def _has_certainly_failed(view: JobView, member: Member, policy: EndPolicy) -> bool:
    """Return True if the member has exited, or raised so long ago that its shutdown hangs.

    If it is not to be restarted, it keeps its time for what it may still do in its exit (the upload of a
    log).
    """
    if member.exit is not None or member.raised is None:
        return member.exit is not None and policy.restarts
    if policy.restarts:
        return view.now - member.raised.raised_at >= SURVIVOR_GRACE_S
    is_idle = member.cpu < PAUSED_CORES and max(member.io, member.traffic) < MOVING_BYTES_PER_S
    return is_idle and view.now - member.raised.raised_at >= STUCK_IN_EXIT_S


def servers_done_verdict(view: JobView, policy: EndPolicy) -> Verdict | None:
    """Decide to end parameter servers, and TF2's workers, when the training is done: they serve for ever.

    An evaluator has its time for the last checkpoint.
    """
    remaining = leftover_members(view)
    if not remaining or not policy.ends_servers:
        return None
    if view.leader_loss is not None and view.leader_loss.is_confirmed:
        return None  # what ran beside the agent that has gone cannot be seen, and may train
    finished = uninterrupted_trainers(view)
    seconds_since_end = view.now - max(_exited_at(m) for m in finished)
    evaluates = any(m.who.job == "evaluator" for m in remaining)
    if seconds_since_end < (LAST_EVALUATION_GRACE_S if evaluates else 0.0):
        return None
    return Verdict(
        Outcome.COMPLETED,
        f"{name_members(finished)} ended with exit code 0; ending what serves: {name_members(remaining)}",
    )


def _exited_at(member: Member) -> float:
    return member.exit.ended_at if member.exit is not None else float("inf")
