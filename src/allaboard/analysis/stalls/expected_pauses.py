"""Pauses that are no hangs: a member writes a checkpoint, evaluates, or waits for a process outside the job.

The other members wait for it meanwhile, and go on when it comes back.
"""

from __future__ import annotations

from allaboard.analysis.failures.killed_child import killed_child_evidence
from allaboard.analysis.member_names import conjugate_verb, name_by_rank
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack, is_inside
from allaboard.analysis.stalls.dead_threads import ended_thread
from allaboard.analysis.stalls.ended_child import answer_is_lost
from allaboard.analysis.stalls.evaluation_heuristic import evaluates_by_name
from allaboard.analysis.stalls.input_generator import member_at_stuck_generator
from allaboard.analysis.stalls.rpc_calls import find_rpc_wait
from allaboard.analysis.stalls.stall import (
    MIN_STILL_SAMPLES,
    MOVING_BYTES_PER_S,
    member_waits_for_peers,
)
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.facts import JobView, Member
from allaboard.facts.memo import cached_per_view

MAX_PAUSE_S = 60.0
"""Seconds that a member may be idle in a checkpoint, an evaluation or a request before its pause counts as a
stall. Such a pause may show no CPU and no I/O of its own: another process uploads, the file system is slow, a
reward model or a simulator computes the answer."""
REDRAWN_S = 2.0
"""Seconds after which a progress bar that was not drawn anew stands still: the usual ones move ten times a
second."""
PAUSED_CORES = 0.03
"""Cores from which a pausing member counts as computing; on a full host it gets only hundredths."""
_ACTIVITY_TEXT = {"checkpoint": "writes a checkpoint", "evaluation": "evaluates"}
_OUTSIDE_ANSWER_TEXT = "waits for the answer of another process"
_CHECKPOINT_READER = "torch/distributed/checkpoint/state_dict_loader.py"


@cached_per_view
def pausing_members(view: JobView) -> tuple[Member, ...]:
    """Return the members whose pause the others wait for, while nobody moves; () if that is not known.

    These are the members inside a checkpoint or an evaluation, but for those that are in a collective of it:
    these wait for others themselves. If all members are inside one, at least one of them must wait.
    """
    if not view.stalled:
        return ()
    alive = [m for m in view.alive if not m.has_no_part]
    pausing = tuple(m for m in alive if m.spent.now and not m.is_stopped)
    if not pausing:
        at_generators = (member_at_stuck_generator(view, m) or m for m in alive)
        candidates = (
            m
            for m in at_generators
            if not m.is_stopped
            and (awaits_outside_answer(m) or evaluates_by_name(m) or draws_progress(view, m))
        )
        sampled = tuple(
            m for m in candidates if m.stack is not None and m.stack.samples >= MIN_STILL_SAMPLES
        )
        return sampled if len(sampled) < len(alive) else ()
    not_waiting = tuple(m for m in pausing if not member_waits_for_peers(m))
    someone_waits = len(not_waiting) < len(alive)
    return not_waiting if someone_waits else ()


def is_in_short_pause(view: JobView, member: Member) -> bool:
    """Return True while a pause is so short that the member's place in the code proves nothing yet."""
    pausing = bool(member.spent.now) or awaits_outside_answer(member) or evaluates_by_name(member)
    pausing = pausing or draws_progress(view, member)
    # Of a member without a black box its stack alone shows that a checkpoint calls its own code.
    pausing = pausing or (not member.probed and is_inside(member.stack, Spot.CHECKPOINT))
    return pausing and view.now - stalled_since(view) < MAX_PAUSE_S


def draws_progress(view: JobView, member: Member) -> bool:
    """Return True if the member has just drawn a progress bar anew: whatever samples of its stack show, it is
    at work, or shows for whom it waits. A member that waits for its peers does not hold them up."""
    is_drawn = member.redrawn_at > 0 and view.now - member.redrawn_at < REDRAWN_S
    return is_drawn and not member_waits_for_peers(member)


def is_pause_progressing(view: JobView) -> bool:
    """Return True if a pausing member makes progress: its stacks change, and it computes, reads or writes."""
    return any(
        m.stack is not None and m.stack.moving and _is_working(m) for m in pausing_members(view)
    )


def _is_working(member: Member) -> bool:
    return (
        member.cpu >= PAUSED_CORES
        or member.os_state == "R"
        or max(member.io, member.traffic) >= MOVING_BYTES_PER_S
    )


def awaits_outside_answer(member: Member) -> bool:
    """Return True if this member waits for the answer of a process outside the job, itself or in a thread.

    Return False where there is a better explanation of the wait: a thread of it that died of an exception, a
    child process that is stopped or was killed, children that can send no answer any more, or a collective
    (which a framework may call in a thread).
    """
    if member.stack is None or ended_thread(member) is not None or member_waits_for_peers(member):
        return False
    if member.stack.stopped or killed_child_evidence(member) or answer_is_lost(member):
        return False
    # A member that joins its own thread is at a lock; the sampler notes if that thread asks outside.
    position = classify_stack(member.stack)
    return position is Spot.ANSWER or (position is Spot.LOCK and member.stack.asks)


def _rpc_line(view: JobView) -> str:
    """Return the status line that names who runs a function of RPC for whom, and where; "" if none stands."""
    rpc_wait = find_rpc_wait(view)
    if rpc_wait is None or not rpc_wait.functions:
        return ""
    callee, stack = rpc_wait.functions[0]
    if stack.samples < MIN_STILL_SAMPLES:
        return ""
    verb = conjugate_verb("wait", rpc_wait.callers)
    function = f"a function that {name_by_rank((callee,))} runs by RPC ({stack.main_frame})"
    return f"waiting: {name_by_rank(rpc_wait.callers)} {verb} for {function}"


def pause_line(view: JobView) -> str:
    """Return the status line that names the pausing members, what they do and where; "" if nobody pauses."""
    if line := _rpc_line(view):
        return line
    pausing = pausing_members(view)
    if not pausing:
        return ""
    example = pausing[0]
    user_frame = example.stack.user if example.stack is not None else None
    location = f" ({user_frame})" if user_frame is not None else ""
    ranks = name_by_rank(pausing[:4])
    if len(pausing) > 1:
        ranks = f"one of {ranks}" + (" and more" if len(pausing) > 4 else "")
    frames = example.stack.frames if example.stack is not None else ()
    is_reading = any(f.file.endswith(_CHECKPOINT_READER) for f in frames)
    activity = "reads a checkpoint" if is_reading else _ACTIVITY_TEXT.get(example.spent.now, "")
    end = example.stack.awaited_end if example.stack is not None else ""
    outside_text = f"waits for {end}" if end else _OUTSIDE_ANSWER_TEXT
    if not activity and draws_progress(view, example):
        activity = "moves its progress bar"
    activity = activity or (
        outside_text if awaits_outside_answer(example) else _ACTIVITY_TEXT["evaluation"]
    )
    return f"waiting: {ranks} {activity}{location}"
