"""When to end a job that stands still."""

from __future__ import annotations

from allaboard.analysis.failures.failure_causality import failed_at
from allaboard.analysis.parameter_servers import is_auxiliary
from allaboard.analysis.stalls.hang_limit import is_over_hang_limit, may_go_on
from allaboard.analysis.stalls.stall import find_stall
from allaboard.analysis.stalls.stalled_members import stalled_members, stalled_since
from allaboard.facts import Claim, JobView, Outcome, Phase, Stage
from allaboard.policy.end.end_policy import EndPolicy, Verdict, is_proven_error
from allaboard.policy.end.failure_end import is_restarted_alone, stuck_failure
from allaboard.policy.end.startup_end import is_waiting_idle

MAX_SHOWN_PLACES = 4
"""Members whose places are listed in the reason."""


def stopped_verdict(view: JobView, policy: EndPolicy) -> Verdict | None:
    """Decide to end the job if a member has been stopped by a signal for longer than the user wants to wait.

    A member that a debugger holds is left alone.
    """
    may_end = policy.restarts and policy.ends_survivors
    if not may_end or not (view.stalled or stalled_members(view)):
        return None
    for member in view.alive:
        seconds_stopped = view.now - member.os_state_since
        is_stopped = member.os_state == "T" and not is_auxiliary(member)
        if not is_stopped or seconds_stopped < policy.stopped_after:
            continue
        if not is_restarted_alone(view, member, policy):
            return Verdict(
                Outcome.HANG,
                f"{member.who.name} has been stopped for {seconds_stopped:.0f} s (--stopped-after "
                f"{policy.stopped_after:g})",
            )
    return None


def hang_verdict(
    view: JobView, claims: list[tuple[Stage, Claim]], policy: EndPolicy
) -> Verdict | None:
    """Decide to end a job that computes wrong values or makes no progress: at once if that is proven, else
    after ``hang_after``."""
    if not policy.stop_on_hang:
        return None
    proven = [c for stage, c in claims if stage is Stage.RUNTIME and is_proven_error(c)]
    corrupting = [c for c in proven if c.corrupts]
    if corrupting:
        return Verdict(
            Outcome.HANG, f"job stopped: it computes wrong values: {corrupting[0].summary}"
        )
    if not (view.stalled or stalled_members(view) or _waits_in_rehearsal(view, policy)):
        return None
    if any(m.os_state == "t" for m in view.alive):
        return None  # somebody examines it with a debugger
    if proven:
        return Verdict(Outcome.HANG, f"job stopped because of a hang: {proven[0].summary}")
    if may_go_on(view):
        return None
    silence = view.now - stalled_since(view)
    if silence >= policy.hang_after and policy.stop_on_error:
        return Verdict(
            Outcome.HANG, f"the rehearsal made no progress for {silence:.0f} s (--bound)"
        )
    if is_over_hang_limit(view, policy.hang_after):
        if (failed := stuck_failure(view, policy)) is not None:
            return Verdict(
                Outcome.FAILED,
                f"{failed.who.name} failed and has not exited for {view.now - failed_at(failed):.0f} s "
                f"(--hang-after {policy.hang_after:g}); ending the others",
            )
        return Verdict(
            Outcome.HANG,
            f"job stopped because of a hang: no progress for {silence:.0f} s "
            f"(--hang-after {policy.hang_after:g}){_absent_places(view, claims)}",
        )
    return None


def _absent_places(view: JobView, claims: list[tuple[Stage, Claim]]) -> str:
    """Return where the members are that the others wait for, if no rule could tell; "" if it is not known.

    On a host that is full there are too few samples to tell what they do.
    """
    explained = {
        identity for stage, claim in claims if stage is Stage.RUNTIME for identity in claim.who
    }
    stall = find_stall(view)
    if stall is None or not stall.waiting:
        return ""
    places = [
        f"{m.who.name} is at {m.stack.main_frame}"
        for m in stall.absent
        if m.who not in explained and m.stack is not None and m.stack.frames
    ]
    return f"; {', '.join(places[:MAX_SHOWN_PLACES])}, not in the collective" if places else ""


def _waits_in_rehearsal(view: JobView, policy: EndPolicy) -> bool:
    """Return True if a member of a rehearsal waits idly in the framework's init, where no step time is
    known."""
    return policy.stop_on_error and any(
        m.phase is Phase.JOINING and is_waiting_idle(view, m) for m in view.alive
    )
