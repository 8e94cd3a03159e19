"""A member that has left a loop of the program which others are still in: its data was shorter, or it stopped
earlier. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from allaboard.analysis.member_names import name_by_rank
from allaboard.facts import Evidence, Frame, Member
from allaboard.facts.stack import EnclosingLoop

MAX_SHOWN_LOOPS = 2
"""Loops that a sentence names."""
LEFT_LOOP_ADVICE = (
    "let all ranks go through each loop equally often: as many batches on each (DistributedSampler, "
    "drop_last, an equal number of steps), and let them decide together where one of them stops early"
)
"""What to do about a member that has left a loop earlier than others."""


class PartedLoops(NamedTuple):
    """The loops that two members are in, one of which is further down in the same function."""

    behind: tuple[EnclosingLoop, ...] = ()
    """Loops that only the one further up is in, the outermost first; () if there are none."""
    ahead: tuple[EnclosingLoop, ...] = ()
    """Loops that only the one further down is in, if a loop around both repeats them: it may be one pass
    behind, and have been left there. () if it has left those of the other one."""


def parted_loops(ahead: Member, behind: Member) -> PartedLoops:
    """Return the loops in which ``behind`` is and ``ahead`` is not, which is further down in the function in
    which they part.

    Both are followed from the outermost frame to there.
    """
    if ahead.stack is None or behind.stack is None:
        return PartedLoops()
    frames_ahead, frames = ahead.stack.frames[::-1], behind.stack.frames[::-1]
    pairs = enumerate(zip(frames_ahead, frames, strict=False))
    depth = next((n for n, (f, other) in pairs if _place(f) != _place(other)), -1)
    if depth < 0:
        return PartedLoops()
    lower, upper = frames_ahead[depth], frames[depth]
    if (lower.file, lower.function) != (upper.file, upper.function) or lower.line <= upper.line:
        return PartedLoops()
    # Who took another branch was never in the loop.
    loops = [f for f in behind.stack.loops if not _is_conditional(f, lower, frames[depth + 1 :])]
    # Around both is what the function repeats for all of them; what it has called is not shared.
    shared = [f for f in _loops_of(upper, loops) if f.last_line < lower.line]
    loops_past = tuple(shared) or _loops_of_first(frames[depth + 1 :], loops)
    shared = [f for f in _loops_of(lower, ahead.stack.loops) if f.head.line > upper.line]
    entered = tuple(shared) or _loops_of_first(frames_ahead[depth + 1 :], ahead.stack.loops)
    around = [f for f in _loops_of(upper, behind.stack.loops) if f.last_line >= lower.line]
    is_repeated = bool(around or _loops_of_first(frames[:depth], behind.stack.loops))
    return PartedLoops(loops_past, entered if loops_past and is_repeated else ())


def _is_conditional(loop: EnclosingLoop, lower: Frame, called: Iterable[Frame]) -> bool:
    """Return True if the loop is in a branch that does not go on to ``lower``, or in one of a function that
    only the member in the loop is in: the other member may have passed it by."""
    functions = {(frame.file, frame.function) for frame in called}
    return any(
        (end.file, end.function) in functions
        or ((end.file, end.function) == (lower.file, lower.function) and end.line < lower.line)
        for end in loop.branch_ends
    )


def _place(frame: Frame) -> tuple[str, str, int]:
    return frame.file, frame.function, frame.line


def _loops_of(frame: Frame, loops: Sequence[EnclosingLoop]) -> tuple[EnclosingLoop, ...]:
    """Return those of the loops that are in this frame's function, the outermost first."""
    function = frame.file, frame.function
    return tuple(f for f in reversed(loops) if (f.head.file, f.head.function) == function)


def _loops_of_first(
    frames: Iterable[Frame], loops: Sequence[EnclosingLoop]
) -> tuple[EnclosingLoop, ...]:
    """Return the loops of the first of the frames that is in one."""
    return next(filter(None, (_loops_of(frame, loops) for frame in frames)), ())


def left_loop_clause(ahead: Sequence[Member], members: Iterable[Member]) -> str:
    """Return "rank 1 has left the loop at train.py:12 (for x, y in data), which rank 0 is still in"; ""
    unless all of ``ahead`` have left a loop that one of the others is in.

    If it is open which of them has left a loop, the clause says where both are.
    """
    for member_behind in members:
        all_parted = {parted_loops(member, member_behind) for member in ahead}
        parted = all_parted.pop() if len(all_parted) == 1 else PartedLoops()
        if not parted.behind:
            continue
        name, name_behind, loops_behind = (
            name_by_rank(ahead),
            name_by_rank((member_behind,)),
            _name(parted.behind),
        )
        if parted.ahead:
            verb = "are" if ahead[1:] else "is"
            return (
                f"{name} {verb} in {_name(parted.ahead)}, and {name_behind} in {loops_behind}: one "
                "side has left its loop before the other"
            )
        return f"{name} {'have' if ahead[1:] else 'has'} left {loops_behind}, which {name_behind} is still in"
    return ""


def _name(loops: Sequence[EnclosingLoop]) -> str:
    """Return "the loop at train.py:12 (for x, y in data)"."""
    places = ", ".join(
        f"{loop.head.file.rpartition('/')[2]}:{loop.head.line} ({loop.head.text.rstrip(':')})"
        for loop in loops[:MAX_SHOWN_LOOPS]
    )
    return f"the {'loops' if loops[1:] else 'loop'} at {places}"


def left_loop_evidence(ahead: Sequence[Member], members: Iterable[Member]) -> tuple[Evidence, ...]:
    """Return that clause as evidence; () if there is none."""
    clause = left_loop_clause(ahead, members)
    return (Evidence(clause, "stacks, source"),) if clause else ()
