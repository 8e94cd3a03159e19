"""When to end a job that has not begun: the roll call, the framework's init, a rehearsal."""

from __future__ import annotations

from collections.abc import Iterable

from allaboard.analysis.roll_call.overdue import find_overdue_member
from allaboard.analysis.roll_call.roll_call import RollCall
from allaboard.facts import Claim, JobView, Member, Outcome, Phase, Severity, Stage
from allaboard.policy.end.end_policy import START_STAGES, EndPolicy, Verdict, is_proven_error

MIN_WAIT_S, BUSY_CORES = 3.0, 0.5
"""Time inside one call of the framework, and cores in use, that tell waiting from work."""
REHEARSAL_FAULT_S = 8.0
"""How long a fault must have lasted before a rehearsal is ended because of it."""


def roll_call_verdict(
    view: JobView, rolls: Iterable[RollCall], claims: list[tuple[Stage, Claim]], policy: EndPolicy
) -> Verdict | None:
    """Decide to end the job if members wait at the gate and it is proven that the others cannot come."""
    rolls = tuple(rolls)
    arrivals = [roll.last_arrival for roll in rolls if roll.held_members]
    if policy.only_reports or not arrivals:
        return None
    is_patient = view.now - max(view.launched_at, *arrivals) < policy.patience
    proven = [
        c
        for stage, c in claims
        if stage in START_STAGES and is_proven_error(c) and not (c.awaits and is_patient)
    ]
    if not proven:
        return _overdue_verdict(view, rolls, claims, is_patient)
    return Verdict(Outcome.ROLL_CALL_FAILED, f"the roll call failed: {proven[0].summary}")


def _overdue_verdict(
    view: JobView, rolls: Iterable[RollCall], claims: list[tuple[Stage, Claim]], is_patient: bool
) -> Verdict | None:
    """Decide to end the job because its time is over, although no error is proven: a bound holds in any
    case."""
    member = None if is_patient else find_overdue_member(view, rolls)
    if member is None:
        return None
    errors = [c for stage, c in claims if stage in START_STAGES and c.severity is Severity.ERROR]
    reason = errors[0].summary if errors else f"{member.who.name} has waited in vain"
    return Verdict(Outcome.ROLL_CALL_FAILED, f"the roll call failed: {reason}")


def init_verdict(view: JobView, policy: EndPolicy) -> Verdict | None:
    """Decide to end the job if the framework's own init does not return within the bound of its caller."""
    if policy.init_within is None:
        return None
    for member in view.alive:
        is_late = view.now - member.phase_since >= policy.init_within
        if member.phase is Phase.JOINING and is_late:
            call = member.declared.call if member.declared is not None else "init"
            reason = f"{call} did not return within {policy.init_within:.0f} s of the roll call"
            return Verdict(Outcome.ROLL_CALL_FAILED, reason)
    return None


def network_verdict(
    view: JobView, claims: list[tuple[Stage, Claim]], policy: EndPolicy
) -> Verdict | None:
    """Decide to end a job that a network fault holds up after the roll call, if the user set a bound.

    The roll call passed in spite of the faulty link, which may not be needed. Which links the framework needs
    is seen by what it does: here it stands still, and no member has made a step.
    """
    if policy.start_bound is None or view.rolled_at is None:
        return None
    if view.now - view.rolled_at < policy.start_bound or any(m.step for m in view.alive):
        return None
    errors = [c for stage, c in claims if stage in START_STAGES and c.severity is Severity.ERROR]
    if not errors or not any(is_waiting_idle(view, m) for m in view.alive):
        return None
    return Verdict(Outcome.ROLL_CALL_FAILED, f"the roll call failed: {errors[0].summary}")


def is_waiting_idle(view: JobView, member: Member) -> bool:
    """Return True if the member is idle, and is inside the framework's init or a collective, gets no answer
    on a connection, or has failed and does not exit."""
    op_since = member.op.since if member.op is not None else view.now
    raised_at = member.raised.raised_at if member.raised is not None else view.now
    joining_since = member.phase_since if member.phase is Phase.JOINING else view.now
    is_still = view.now - min(op_since, raised_at, joining_since) >= MIN_WAIT_S
    return (is_still or bool(member.unanswered)) and member.cpu < BUSY_CORES


def rehearsal_verdict(
    view: JobView, claims: list[tuple[Stage, Claim]], policy: EndPolicy
) -> Verdict | None:
    """Decide to end a rehearsal that does not come to its end, once the cause is known and the other hosts
    had their time to find the same."""
    if not policy.stop_on_error or view.rolled_at is None:
        return None
    for stage, claim in claims:
        is_lasting = claim.since is not None and view.now - claim.since >= REHEARSAL_FAULT_S
        if stage in START_STAGES and claim.severity is Severity.ERROR and is_lasting:
            return Verdict(Outcome.HANG, f"rehearsal stopped: {claim.summary}")
    return None
