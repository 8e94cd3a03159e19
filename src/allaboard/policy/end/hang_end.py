"""Whether a job that stands still is to be ended."""

from __future__ import annotations

from allaboard.analysis.parameter_servers.parameter_servers import beside
from allaboard.analysis.roll_call.roll_call import has_live_rpc_member
from allaboard.analysis.stalls.checkpoint_pauses import is_pause_progressing
from allaboard.analysis.stalls.stall import find_stall, is_transferring
from allaboard.analysis.stalls.stalled_members import stalled_members, stalled_since
from allaboard.facts import Claim, JobView, Outcome, Phase, Stage
from allaboard.policy.end.end_policy import EndPolicy, Verdict, is_proven_error
from allaboard.policy.end.failure_end import is_restarted_alone
from allaboard.policy.end.startup_end import is_waiting_idle

DIAGNOSIS_TIME_S = 5.0
"""Seconds after a job counts as standing still in which its stacks are taken, and it is told who waits for
whom: a job that is ended before has no finding."""


def stopped_verdict(view: JobView, policy: EndPolicy) -> Verdict | None:
    """Somebody is stopped by a signal, not dead, for longer than the user wants to wait for it. Who is
    held by a debugger is left alone."""
    if (
        not policy.restarts
        or not policy.ends_survivors
        or not (view.stalled or stalled_members(view))
    ):
        return None
    for member in view.alive:
        since = view.now - member.os_state_since
        alone = is_restarted_alone(view, member, policy)
        stopped = member.os_state == "T" and not beside(member)
        if stopped and since >= policy.stopped_after and not alone:
            who = member.who.name
            return Verdict(
                Outcome.HANG,
                f"{who} has been stopped for {since:.0f} s (--stopped-after "
                f"{policy.stopped_after:g})",
            )
    return None


def hang_verdict(
    view: JobView, claims: list[tuple[Stage, Claim]], policy: EndPolicy
) -> Verdict | None:
    """It computes wrong values, or makes no progress: at once where proven, else after ``hang_after``."""
    if not policy.stop_on_hang:
        return None
    wrong = [c for stage, c in claims if stage is Stage.RUNTIME and is_proven_error(c)]
    corrupt = [c for c in wrong if c.corrupts]
    if corrupt:
        return Verdict(Outcome.HANG, f"ended, it computes wrong values: {corrupt[0].summary}")
    if not (view.stalled or stalled_members(view) or _rehearsal_waits(view, policy)):
        return None
    if any(m.os_state == "t" for m in view.alive):
        return None  # somebody looks at it with a debugger
    if wrong:
        return Verdict(Outcome.HANG, f"ended for a hang: {wrong[0].summary}")
    if (
        is_transferring(view)
        or _gathers(view)
        or is_pause_progressing(view)
        or has_live_rpc_member(view)
    ):
        return None
    silent = view.now - stalled_since(view)
    if silent >= policy.hang_after and policy.stop_on_error:
        return Verdict(Outcome.HANG, f"the rehearsal made no progress for {silent:.0f} s (--bound)")
    if silent >= max(policy.hang_after, view.stall_after + DIAGNOSIS_TIME_S):
        return Verdict(
            Outcome.HANG,
            f"ended for a hang: no progress for {silent:.0f} s (--hang-after {policy.hang_after:g})"
            + _not_there(view, claims),
        )
    return None


def _not_there(view: JobView, claims: list[tuple[Stage, Claim]]) -> str:
    """Where those are for whom the others wait, if no rule could tell: on a host that is full there are too
    few looks to say what they do."""
    told = {w for stage, claim in claims if stage is Stage.RUNTIME for w in claim.who}
    found = find_stall(view)
    if found is None or not found.waiting:
        return ""
    places = [
        f"{m.who.name} is at {m.stack.place}"
        for m in found.absent
        if m.who not in told and m.stack is not None and m.stack.frames
    ]
    return f"; {', '.join(places[:4])}, and not in the collective" if places else ""


def _gathers(view: JobView) -> bool:
    """Whether somebody stands at the door who may still wait, or is on the way there, and imports a framework
    from a slow disk: a roll call has a time of its own, after which it is told who is missing."""
    arrived = [m.phase_since for m in view.alive if m.phase is Phase.ARRIVED]
    coming = [m.started_at for m in view.alive if m.phase is Phase.IMPORTING]
    since = max([view.launched_at, *arrived, *coming])
    return bool(arrived or coming) and view.now - since < view.timeout


def _rehearsal_waits(view: JobView, policy: EndPolicy) -> bool:
    """Whether somebody waits idly inside the framework's init, where nothing tells how long a step takes."""
    return policy.stop_on_error and any(
        m.phase is Phase.JOINING and is_waiting_idle(view, m) for m in view.alive
    )
