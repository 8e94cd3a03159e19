"""Who writes a checkpoint, evaluates, or waits for the answer of another process while others wait for it:
a pause, and no hang."""

from __future__ import annotations

from allaboard.analysis.failures.killed_child import killed_below
from allaboard.analysis.stacks.stack_classifier import Spot, spot
from allaboard.analysis.stalls.dead_threads import ended_thread
from allaboard.analysis.stalls.evaluation_heuristic import evaluates_by_name
from allaboard.analysis.stalls.stall import IO_MOVING, LOOKS, waits
from allaboard.analysis.stalls.stalled_members import stood_since
from allaboard.facts import JobView, Member
from allaboard.facts.memo import cached_per_view

LONG = 60.0
"""Seconds in which a member that is idle in a checkpoint or an evaluation may do what shows no CPU and no
I/O of its own: an upload by another process, a file system that takes its time. Or wait for the answer of
another process: a model that is asked for rewards, actors that play their games."""
RESTS = 0.03
"""Cores: on a host that is full, who computes gets no more than a few hundredths."""
_DOES = {"checkpoint": "writes a checkpoint", "evaluation": "evaluates"}
_ASKS = "waits for the answer of another process"
_READS = "torch/distributed/checkpoint/state_dict_loader.py"


@cached_per_view
def pauses(view: JobView) -> tuple[Member, ...]:
    """Who is inside of a checkpoint or an evaluation while nobody moves, and others are not; where all are,
    those for whom the others wait in a collective of it; () where that is not to be told."""
    if not view.stalled:
        return ()
    alive = [m for m in view.alive if not m.launcher]
    inside = tuple(m for m in alive if m.spent.now and not m.stopped)
    if not inside:
        seen = (m for m in alive if not m.stopped and (asks(m) or evaluates_by_name(m)))
        away = tuple(m for m in seen if m.stack is not None and m.stack.samples >= LOOKS)
        return away if len(away) < len(alive) else ()
    if len(inside) < len(alive):
        return inside
    busy = tuple(m for m in inside if not waits(m))
    return busy if len(busy) < len(inside) else ()


def patient(view: JobView, member: Member) -> bool:
    """Whether it is in such a pause, and not for long: where it is says nothing yet."""
    away = bool(member.spent.now) or asks(member) or evaluates_by_name(member)
    return away and view.now - stood_since(view) < LONG


def at_work(view: JobView) -> bool:
    """Whether somebody in such a pause gets on: its stacks differ, and it computes, reads or writes."""
    return any(m.stack is not None and m.stack.moving and _works(m) for m in pauses(view))


def _works(member: Member) -> bool:
    return (
        member.cpu >= RESTS or member.os_state == "R" or max(member.io, member.traffic) >= IO_MOVING
    )


def asks(member: Member) -> bool:
    """Whether it waits for the answer of another process, by itself or by a thread that it waits for. Where a
    thread of it has ended by an exception, that explains its wait better; so does a process of its own that
    is stopped or was killed, and a collective that it is in, which a framework may call in threads."""
    if member.stack is None or ended_thread(member) is not None or waits(member):
        return False
    if member.stack.stopped or killed_below(member):
        return False
    at = spot(member.stack)
    return at is Spot.ANSWER or (at is Spot.LOCK and member.stack.asks)


def pause_line(view: JobView) -> str:
    """Whom the others wait for, in what and where; "" for nobody."""
    found = pauses(view)
    if not found:
        return ""
    first = found[0]
    place = first.stack.user if first.stack is not None else None
    where = f" ({place})" if place is not None else ""
    who = "rank " + ", ".join(str(m.who.rank) for m in found[:4])
    if len(found) > 1:
        who = who.replace("rank", "one of ranks", 1) + (" and more" if len(found) > 4 else "")
    frames = first.stack.frames if first.stack is not None else ()
    reads = any(f.file.endswith(_READS) for f in frames)
    does = "reads a checkpoint" if reads else _DOES.get(first.spent.now, "")
    does = does or (_ASKS if asks(first) else _DOES["evaluation"])
    return f"waiting: {who} {does}{where}"
