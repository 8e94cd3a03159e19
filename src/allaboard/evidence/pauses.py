"""Who writes a checkpoint or evaluates while others wait for it: a pause, and no hang."""

from __future__ import annotations

from allaboard.evidence.stall import waits
from allaboard.evidence.standing import stood_since
from allaboard.facts import JobView, Member

LONG = 60.0
"""Seconds in which a member that is idle in a checkpoint or an evaluation may do what shows no CPU and no
I/O of its own: an upload by another process, a file system that takes its time."""
_DOES = {"checkpoint": "writes a checkpoint", "evaluation": "evaluates"}
_READS = "torch/distributed/checkpoint/state_dict_loader.py"


def pauses(view: JobView) -> tuple[Member, ...]:
    """Who is inside of a checkpoint or an evaluation while nobody moves, and others are not; where all are,
    those for whom the others wait in a collective of it; () where that is not to be told."""
    if not view.stalled:
        return ()
    alive = [m for m in view.alive if not m.launcher]
    inside = tuple(m for m in alive if m.spent.now and not m.stopped)
    if len(inside) < len(alive):
        return inside
    busy = tuple(m for m in inside if not waits(m))
    return busy if len(busy) < len(inside) else ()


def patient(view: JobView, one: Member) -> bool:
    """Whether it is in such a pause, and not for long: where it is says nothing yet."""
    return bool(one.spent.now) and view.now - stood_since(view) < LONG


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
    does = "reads a checkpoint" if reads else _DOES[first.spent.now]
    return f"waiting: {who} {does}{where}"
