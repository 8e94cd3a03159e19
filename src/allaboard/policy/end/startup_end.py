"""Whether a job that has not begun is to be ended: the roll call, the framework's init, a rehearsal."""

from __future__ import annotations

from collections.abc import Iterable

from allaboard.analysis.roll_call.roll_call import RollCall
from allaboard.facts import Claim, JobView, Member, Outcome, Phase, Severity, Stage
from allaboard.policy.end.end_policy import START_STAGES, EndPolicy, Verdict, is_proven_error

MIN_WAIT_S, BUSY_CORES = 3.0, 0.5
"""Seconds inside one call of the framework, and the cores in use, that tell waiting from work."""
REHEARSAL_FAULT_S = 8.0
"""Seconds that a fault lasted before a rehearsal is ended for it."""


def roll_call_verdict(
    view: JobView, rolls: Iterable[RollCall], claims: list[tuple[Stage, Claim]], policy: EndPolicy
) -> Verdict | None:
    """Somebody stands at the door, and it is proven that the others cannot come."""
    arrived = [roll.last_arrival for roll in rolls if roll.held]
    if policy.only_reports or not arrived:
        return None
    patient = view.now - max(view.launched_at, *arrived) < policy.patience
    wrong = [
        c
        for stage, c in claims
        if stage in START_STAGES and is_proven_error(c) and not (c.awaits and patient)
    ]
    if not wrong:
        return None
    return Verdict(Outcome.ROLL_CALL_FAILED, f"the roll call failed: {wrong[0].summary}")


def init_verdict(view: JobView, policy: EndPolicy) -> Verdict | None:
    """The framework's own init does not come back, and its caller gave it a bound."""
    if policy.init_within is None:
        return None
    for member in view.alive:
        within = view.now - member.phase_since < policy.init_within
        if member.phase is Phase.JOINING and not within:
            call = member.declared.call if member.declared is not None else "init"
            said = f"{call} did not come back within {policy.init_within:.0f} s of the roll call"
            return Verdict(Outcome.ROLL_CALL_FAILED, said)
    return None


def network_verdict(
    view: JobView, claims: list[tuple[Stage, Claim]], policy: EndPolicy
) -> Verdict | None:
    """The roll call passed, over a link that may not be needed; now the framework stands still, nobody
    has done a step, and the user set a bound. Which links it needs is seen by what it does."""
    if policy.start_bound is None or view.rolled_at is None:
        return None
    if view.now - view.rolled_at < policy.start_bound or any(m.step for m in view.alive):
        return None
    wrong = [c for stage, c in claims if stage in START_STAGES and c.severity is Severity.ERROR]
    if not wrong or not any(is_waiting_idle(view, m) for m in view.alive):
        return None
    return Verdict(Outcome.ROLL_CALL_FAILED, f"the roll call failed: {wrong[0].summary}")


def is_waiting_idle(view: JobView, member: Member) -> bool:
    """Whether it is inside the framework's init or a collective, gets no answer on a connection, or has
    failed and does not end; and is idle."""
    inside = member.op.since if member.op is not None else view.now
    failed = member.raised.at if member.raised is not None else view.now
    joins = member.phase_since if member.phase is Phase.JOINING else view.now
    still = view.now - min(inside, failed, joins) >= MIN_WAIT_S
    return (still or bool(member.unanswered)) and member.cpu < BUSY_CORES


def rehearsal_verdict(
    view: JobView, claims: list[tuple[Stage, Claim]], policy: EndPolicy
) -> Verdict | None:
    """A rehearsal has begun and does not come to its end; others had their time to find the same."""
    if not policy.stop_on_error or view.rolled_at is None:
        return None
    for stage, claim in claims:
        lasting = claim.since is not None and view.now - claim.since >= REHEARSAL_FAULT_S
        if stage in START_STAGES and claim.severity is Severity.ERROR and lasting:
            return Verdict(Outcome.HANG, f"ended, the cause is known: {claim.summary}")
    return None
