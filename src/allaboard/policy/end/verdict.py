"""Whether a job is to be ended now: the earliest stage decides."""

from __future__ import annotations

from collections.abc import Iterable

from allaboard.analysis.parameter_servers.parameter_servers import goes_on_without
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
    """Whether the job is to be ended now, and why; None to let it be."""
    if policy.only_observes or not view.alive:
        return None
    claims, rolls = list(claims), list(rolls)
    return (
        _interrupted(view, rolls, policy)
        or startup_end.roll_call_verdict(view, rolls, claims, policy)
        or startup_end.init_verdict(view, policy)
        or startup_end.network_verdict(view, claims, policy)
        or startup_end.rehearsal_verdict(view, claims, policy)
        or failure_end.failure_verdict(view, policy)
        or failure_end.servers_done_verdict(view, policy)
        or hang_end.stopped_verdict(view, policy)
        or hang_end.hang_verdict(view, claims, policy)
    )


def _interrupted(view: JobView, rolls: Iterable[RollCall], policy: EndPolicy) -> Verdict | None:
    """Another host was interrupted, and what ran there has ended: nobody starts it again from here."""
    if not view.interruptions:
        return None
    said = f"{view.interruptions[0]}; ending the others"
    if view.rolled_at is None:
        waits = any(roll.is_interrupted for roll in rolls) and not policy.only_reports
        return Verdict(Outcome.INTERRUPTED, said) if waits else None
    if not (policy.restarts and policy.ends_survivors):
        return None
    gone = [m for m in view.members if m.interrupted is not None and not m.alive]
    if all(
        goes_on_without(view, m) or failure_end.is_restarted_alone(view, m, policy) for m in gone
    ):
        return None  # others may go on; who stands still for it is ended by its own agent's bond
    return Verdict(Outcome.INTERRUPTED, said)
