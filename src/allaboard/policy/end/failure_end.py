"""Whether the rest of a job is to be ended because some have ended: failed, or done what was to do."""

from __future__ import annotations

from allaboard.analysis.failures.failure_causality import order_failures
from allaboard.analysis.member_names import names
from allaboard.analysis.parameter_servers.parameter_servers import (
    goes_on_without,
    left_over,
    trained,
)
from allaboard.analysis.stalls.checkpoint_pauses import PAUSED_CORES
from allaboard.analysis.stalls.stall import MOVING_BYTES_PER_S
from allaboard.facts import JobView, Member, Outcome
from allaboard.policy.end.end_policy import EndPolicy, Verdict
from allaboard.policy.restart.task_restart import can_restart_alone

SURVIVOR_GRACE_S = 5.0
"""Seconds that the members left after one failed get to end by themselves and say what they met."""
STUCK_IN_EXIT_S = 20.0
"""Seconds from an exception at its top until a member that does nothing counts as held in its own end, as
JAX's is by a barrier of all (300 s)."""
LAST_EVALUATION_GRACE_S = 60.0
"""Seconds that an evaluator gets after the training, to end by itself."""


def failure_verdict(view: JobView, policy: EndPolicy) -> Verdict | None:
    """A member failed after the start; the others had their time to end by themselves. Where it is
    to be started again, every second of theirs is lost."""
    if not policy.ends_survivors or (view.rolled_at is None and not policy.restarts):
        return None
    found = order_failures(view)
    here = [
        m
        for m in found.root_failures + found.consequences
        if not (
            is_restarted_alone(view, m, policy) or goes_on_without(view, m) or _handled(view, m)
        )
    ]
    ended = [m for m in here if m.exit is not None]
    if ended and view.now - min(_ended_at(m) for m in ended) >= SURVIVOR_GRACE_S:
        first = min(ended, key=_ended_at)
    elif here and here[0] in found.root_failures and _told(view, here[0], policy):
        first = here[0]
    else:
        return None
    return Verdict(Outcome.FAILED, f"{first.who.name} failed; ending the others")


def is_restarted_alone(view: JobView, member: Member, policy: EndPolicy) -> bool:
    """Whether it is started again alone, so that its end is not the job's."""
    return policy.restarts and can_restart_alone(view, member)


def _handled(view: JobView, member: Member) -> bool:
    """Whether the process that started it lives, and is to decide: a sweep goes on with its next training."""
    return any(m.launcher and m.worker == member.worker for m in view.alive)


def _told(view: JobView, member: Member, policy: EndPolicy) -> bool:
    """Whether it has failed for certain: it has ended, or raised so long ago that its shutdown hangs. Where
    it is not to be started again, what it may still do in its end (the upload of a log) has its time."""
    if member.exit is not None or member.raised is None:
        return member.exit is not None and policy.restarts
    if policy.restarts:
        return view.now - member.raised.at >= SURVIVOR_GRACE_S
    idle = member.cpu < PAUSED_CORES and max(member.io, member.traffic) < MOVING_BYTES_PER_S
    return idle and view.now - member.raised.at >= STUCK_IN_EXIT_S


def servers_done_verdict(view: JobView, policy: EndPolicy) -> Verdict | None:
    """Parameter servers, and TF2's workers, serve for ever: the end is ours to see. An evaluator
    gets its time for the last checkpoint."""
    rest = left_over(view)
    if not rest or not policy.ends_servers:
        return None
    finished = trained(view)
    quiet = view.now - max(_ended_at(m) for m in finished)
    if quiet < (LAST_EVALUATION_GRACE_S if any(m.who.job == "evaluator" for m in rest) else 0.0):
        return None
    left = names(rest)
    return Verdict(
        Outcome.COMPLETED, f"{names(finished)} ended with exit code 0; ending what serves: {left}"
    )


def _ended_at(member: Member) -> float:
    return member.exit.at if member.exit is not None else float("inf")
