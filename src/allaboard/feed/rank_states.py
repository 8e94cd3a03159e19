"""Each process of the job as the feed shows it."""

from __future__ import annotations

from math import isfinite

import msgspec

from allaboard.analysis.parameter_servers import (
    TimeBreakdown,
    break_down_time,
    has_parameter_servers,
    only_serves,
)
from allaboard.analysis.resources.gpu_holders import gpu_memory_by_member
from allaboard.analysis.stalls.call_waits import count_waiters, find_call_waits
from allaboard.analysis.stalls.stall import member_waits_for_peers
from allaboard.facts import Activity, Frame, JobView, Member, Phase, RankState
from allaboard.facts.signal_name import signal_name
from allaboard.feed.host_readings import Uses, uses_by_owner
from allaboard.feed.tracker_runs import tracker_runs

WAITING_AFTER_S = 1.0
"""Seconds inside one operation after which a rank counts as waiting: an ordinary call is over sooner."""
SHARE_WINDOW_S = 20.0
"""Seconds that the shares of waiting look back on, as `Member.pace` does."""
MAX_NAMED_AWAITED = 4
"""Names of awaited members in one rank's state; the others are counted."""
SLOWER_STEPS = 5.0
"""Steps' time without a step after which the rate is 0."""
MIN_STEP_SILENCE_S = 5.0
"""Seconds without a step before which the rate is kept, however short the steps are."""

_ACTIVITY = {
    Phase.LAUNCHED: Activity.STARTING,
    Phase.STARTED: Activity.STARTING,
    Phase.IMPORTING: Activity.IMPORTING,
    Phase.IMPORTED: Activity.OWN_CODE,
    Phase.ARRIVED: Activity.AT_GATE,
    Phase.JOINING: Activity.JOINING,
    Phase.JOINED: Activity.JOINED,
    Phase.TRAINING: Activity.TRAINING,
    Phase.LEAVING: Activity.LEAVING,
}
_PAUSES = {"checkpoint": Activity.CHECKPOINT, "evaluation": Activity.EVALUATION}


def shown_members(view: JobView) -> list[Member]:
    """Return the members that faces show, by rank: no launchers, and no child processes of which it is not
    known what they are."""
    shown = [m for m in view.members if not m.has_no_part]
    return sorted(shown, key=lambda m: (m.who.rank < 0, m.who.rank, m.worker))


def rank_states(view: JobView) -> tuple[RankState, ...]:
    """Return the state of every process that is shown."""
    waits = find_call_waits(view)
    waiters = count_waiters(waits)
    served = has_parameter_servers(view)
    uses, gpu_memory = uses_by_owner(view), gpu_memory_by_member(view) if view.gpus else None
    states = []
    for member in shown_members(view):
        breakdown = break_down_time(view, member) if served else None
        behind = waits.get(member.event_key, ())
        state = _rank_state(view, member, behind, waiters.get(member.event_key, 0), breakdown)
        measured = uses.get((state.host, state.pid))
        if measured is not None and member.alive:
            state = _with_readings(state, measured)
        if gpu_memory is not None and member.alive:
            nbytes = gpu_memory.get((state.host, state.pid), 0)
            state = msgspec.structs.replace(state, gpu_memory_nbytes=nbytes)
        states.append(state)
    return tuple(states)


def _with_readings(state: RankState, uses: Uses) -> RankState:
    """Return the state with what was measured of its process."""
    files, threads, queued = (uses.get(n) for n in ("open files", "threads", "queued"))
    return msgspec.structs.replace(
        state,
        queued=round(min(1.0, max(0.0, queued.recent.rate)), 3) if queued is not None else 0.0,
        threads=int(threads.value) if threads is not None else 0,
        open_files=int(files.value) if files is not None else 0,
        open_files_limit=int(files.limit) if files is not None else 0,
    )


def _rank_state(
    view: JobView,
    member: Member,
    behind: tuple[Member, ...],
    awaited_by: int,
    breakdown: TimeBreakdown | None,
) -> RankState:
    who, op, pace, loss = member.who, member.op, member.pace, member.loss
    is_bad_loss = loss is not None and loss.bad > 0
    operation_s = max(0.0, view.now - op.since) if op is not None and member.alive else 0.0
    stands_at = _place(member)
    step_s = pace.step if pace.steps and pace.step > 0 else None
    activity = activity_of(view, member)
    # To wait is the work of a server.
    waits = member.alive and activity is not Activity.SERVING
    alive = member.alive
    return RankState(
        name=who.name,
        activity=activity,
        phase=member.phase.name.lower(),
        rank=who.rank,
        job=who.job,
        index=who.index,
        host=who.host,
        pid=who.pid,
        step=member.step,
        step_s=step_s,
        steps_per_s=_steps_per_s(view, member, step_s),
        loss=None if is_bad_loss else member.last_loss,
        loss_text=loss.value if loss is not None and is_bad_loss else "",
        waiting=round(_waiting_share(member, operation_s, breakdown), 3) if waits else 0.0,
        input=round(min(1.0, pace.input / pace.step), 3) if step_s and alive else 0.0,
        operation=op.name if op is not None and alive else "",
        operation_s=round(operation_s, 3),
        waits_for=tuple(m.who.name for m in behind[:MAX_NAMED_AWAITED]),
        waits_for_count=len(behind),
        awaited_by=awaited_by,
        file=stands_at.file if stands_at is not None else "",
        line=stands_at.line if stands_at is not None else 0,
        function=stands_at.function if stands_at is not None else "",
        silent_s=round(max(0.0, view.now - member.moved_at), 3) if alive else 0.0,
        cpu=round(member.cpu, 3) if alive else 0.0,
        cores=round(member.load.allowed, 2),
        memory_nbytes=member.rss_nbytes if alive else 0,
        device_memory=member.memory if alive else None,
        received_per_s=sum(p.received for p in member.pairs) if alive else 0.0,
        sent_per_s=sum(p.sent for p in member.pairs) if alive else 0.0,
        state=member.os_state if alive else "",
        end=describe_end(member),
        round=member.round,
        trackers=tracker_runs(member.notes),
    )


def activity_of(view: JobView, member: Member) -> Activity:
    """Return what the member does now."""
    end = member.exit
    if end is not None:
        if end.lost:
            return Activity.LOST
        if end.ours:
            return Activity.ENDED
        return Activity.DONE if end.code == 0 else Activity.FAILED
    if member.is_stopped:
        return Activity.STOPPED
    if only_serves(member) and (member.phase >= Phase.JOINED or member.op is not None):
        return Activity.SERVING
    if member.spent.now in _PAUSES and not (view.stalled and member_waits_for_peers(member)):
        return _PAUSES[member.spent.now]  # else it stands in a collective of its evaluation
    op = member.op
    is_in_call = op is not None and view.now - op.since >= WAITING_AFTER_S
    if is_in_call and member.phase in (Phase.JOINED, Phase.TRAINING):
        return Activity.WAITING
    is_silent = op is None and view.now - member.moved_at >= view.stall_after
    if is_silent and member.phase in (Phase.JOINED, Phase.TRAINING):
        return Activity.OWN_CODE
    return _ACTIVITY[member.phase]


def describe_end(member: Member) -> str:
    """Return how the member ended: "exit code 1", "SIGKILL (out of memory)"; "" while it lives."""
    end = member.exit
    if end is None:
        return ""
    if end.lost:
        return "no longer heard from"
    if end.signal is not None:
        return signal_name(end.signal) + (" (out of memory)" if end.oom else "")
    return f"exit code {end.code}" if end.code is not None else "ended, exit code not known"


def _place(member: Member) -> Frame | None:
    """Return the line of the user's code at which the member is known to stand: of its exception, of its
    stack, or of the call that it is inside of."""
    if member.raised is not None and member.raised.where is not None:
        return member.raised.where
    if not member.alive:
        return None
    if member.stack is not None and member.stack.frames:
        return member.stack.main_frame
    op = member.op
    if op is None:
        return None
    for state in reversed(member.groups):
        if state.name == op.group and state.number == op.position and state.last_call is not None:
            return state.last_call.site
    return None


def _steps_per_s(view: JobView, member: Member, step_s: float | None) -> float:
    if not step_s or not member.alive or member.is_stopped:
        return 0.0
    silence_s = view.now - member.step_at
    is_over = silence_s > max(MIN_STEP_SILENCE_S, SLOWER_STEPS * step_s)
    return 0.0 if is_over else round(1.0 / step_s, 4)


def _waiting_share(member: Member, operation_s: float, breakdown: TimeBreakdown | None) -> float:
    """Return the share of the last seconds in which the member waited for others: the unfinished wait counts,
    or the ranks that hang for their peers would seem to wait for nobody."""
    if breakdown is not None:
        return min(1.0, breakdown.waiting)
    pace = member.pace
    usual_share = min(1.0, pace.sync / pace.step) if pace.steps and pace.step > 0 else 0.0
    if operation_s < WAITING_AFTER_S or not isfinite(operation_s):
        return usual_share
    current_s = min(operation_s, SHARE_WINDOW_S)
    return (current_s + usual_share * (SHARE_WINDOW_S - current_s)) / SHARE_WINDOW_S
