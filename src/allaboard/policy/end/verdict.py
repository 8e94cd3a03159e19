"""The decision to end a job now: the earliest stage decides."""

from __future__ import annotations

from collections.abc import Iterable

from allaboard.analysis.parameter_servers import can_go_on_without
from allaboard.analysis.roll_call.roll_call import RollCall
from allaboard.facts import Claim, JobView, Outcome, Stage
from allaboard.policy.end import failure_end, hang_end, startup_end
from allaboard.policy.end.end_policy import EndPolicy, Verdict


def end_verdict(
    view: JobView,
    rolls: Iterable[RollCall],
    claims: Iterable[tuple[Stage, Claim]],
    policy: EndPolicy,
) -> Verdict | None:
    """Return why and how the job is to be ended now; None if it is not."""
    if policy.only_observes or not view.alive:
        return None
    claims, rolls = list(claims), list(rolls)
    # The order matters: a cause at the start explains what a later stage would report as a hang.
    return (
        _interruption_verdict(view, rolls, policy)
        or startup_end.roll_call_verdict(view, rolls, claims, policy)
        or startup_end.init_verdict(view, policy)
        or startup_end.network_verdict(view, claims, policy)
        or startup_end.rehearsal_verdict(view, claims, policy)
        or failure_end.failure_verdict(view, policy)
        or failure_end.servers_done_verdict(view, policy)
        or hang_end.stopped_verdict(view, policy)
        or hang_end.hang_verdict(view, claims, policy)
    )


def _interruption_verdict(
    view: JobView, rolls: Iterable[RollCall], policy: EndPolicy
) -> Verdict | None:
    """Decide to end the job because another host was interrupted: what ran there cannot be restarted from
    here."""
    if not view.interruptions:
        return None
    reason = f"{view.interruptions[0]}; ending the others"
    if view.rolled_at is None:
        is_awaited = any(roll.is_interrupted for roll in rolls) and not policy.only_reports
        return Verdict(Outcome.INTERRUPTED, reason) if is_awaited else None
    if not (policy.restarts and policy.ends_survivors):
        return None
    interrupted = [m for m in view.members if m.interrupted is not None and not m.alive]
    if all(
        can_go_on_without(view, m) or failure_end.is_restarted_alone(view, m, policy)
        for m in interrupted
    ):
        return None  # the others may go on; a host that stands still without them is ended by its own agent
    return Verdict(Outcome.INTERRUPTED, reason)
