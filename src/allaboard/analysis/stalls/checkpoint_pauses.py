"""Who writes a checkpoint, evaluates, or waits for the answer of another process while others wait for it:
a pause, and no hang."""

from __future__ import annotations

from allaboard.analysis.failures.killed_child import killed_below
from allaboard.analysis.stacks.stack_classifier import Spot, spot
from allaboard.analysis.stalls.dead_threads import ended_thread
from allaboard.analysis.stalls.evaluation_heuristic import evaluates_by_name
from allaboard.analysis.stalls.stall import (
    MIN_STILL_SAMPLES,
    MOVING_BYTES_PER_S,
    member_waits_for_peers,
)
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.facts import JobView, Member
from allaboard.facts.memo import cached_per_view

MAX_PAUSE_S = 60.0
"""Seconds in which a member that is idle in a checkpoint or an evaluation may do what shows no CPU and no
I/O of its own: an upload by another process, a file system that takes its time. Or wait for the answer of
another process: a model that is asked for rewards, actors that play their games."""
PAUSED_CORES = 0.03
"""Cores: on a host that is full, who computes gets no more than a few hundredths."""
_ACTIVITY_TEXT = {"checkpoint": "writes a checkpoint", "evaluation": "evaluates"}
_OUTSIDE_ANSWER_TEXT = "waits for the answer of another process"
_CHECKPOINT_READER = "torch/distributed/checkpoint/state_dict_loader.py"


@cached_per_view
def pausing_members(view: JobView) -> tuple[Member, ...]:
    """Who is inside of a checkpoint or an evaluation while nobody moves, and others are not; where all are,
    those for whom the others wait in a collective of it; () where that is not to be told."""
    if not view.stalled:
        return ()
    alive = [m for m in view.alive if not m.launcher]
    pausing = tuple(m for m in alive if m.spent.now and not m.stopped)
    if not pausing:
        candidates = (
            m for m in alive if not m.stopped and (awaits_outside_answer(m) or evaluates_by_name(m))
        )
        sampled = tuple(
            m for m in candidates if m.stack is not None and m.stack.samples >= MIN_STILL_SAMPLES
        )
        return sampled if len(sampled) < len(alive) else ()
    if len(pausing) < len(alive):
        return pausing
    not_waiting = tuple(m for m in pausing if not member_waits_for_peers(m))
    return not_waiting if len(not_waiting) < len(pausing) else ()


def is_in_short_pause(view: JobView, member: Member) -> bool:
    """Whether it is in such a pause, and not for long: where it is says nothing yet."""
    pausing = bool(member.spent.now) or awaits_outside_answer(member) or evaluates_by_name(member)
    return pausing and view.now - stalled_since(view) < MAX_PAUSE_S


def is_pause_progressing(view: JobView) -> bool:
    """Whether somebody in such a pause gets on: its stacks differ, and it computes, reads or writes."""
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
    """Whether it waits for the answer of another process, by itself or by a thread that it waits for. Where a
    thread of it has ended by an exception, that explains its wait better; so does a process of its own that
    is stopped or was killed, and a collective that it is in, which a framework may call in threads."""
    if member.stack is None or ended_thread(member) is not None or member_waits_for_peers(member):
        return False
    if member.stack.stopped or killed_below(member):
        return False
    position = spot(member.stack)
    return position is Spot.ANSWER or (position is Spot.LOCK and member.stack.asks)


def pause_line(view: JobView) -> str:
    """Whom the others wait for, in what and where; "" for nobody."""
    pausing = pausing_members(view)
    if not pausing:
        return ""
    example = pausing[0]
    user_frame = example.stack.user if example.stack is not None else None
    location = f" ({user_frame})" if user_frame is not None else ""
    ranks = "rank " + ", ".join(str(m.who.rank) for m in pausing[:4])
    if len(pausing) > 1:
        ranks = ranks.replace("rank", "one of ranks", 1) + (" and more" if len(pausing) > 4 else "")
    frames = example.stack.frames if example.stack is not None else ()
    is_reading = any(f.file.endswith(_CHECKPOINT_READER) for f in frames)
    activity = "reads a checkpoint" if is_reading else _ACTIVITY_TEXT.get(example.spent.now, "")
    activity = activity or (
        _OUTSIDE_ANSWER_TEXT if awaits_outside_answer(example) else _ACTIVITY_TEXT["evaluation"]
    )
    return f"waiting: {ranks} {activity}{location}"
