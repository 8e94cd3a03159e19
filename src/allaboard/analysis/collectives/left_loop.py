"""A member that has left a loop of the program which others are still in: its data was shorter, or it stopped
earlier. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from allaboard.analysis.member_names import name_by_rank
from allaboard.facts import Evidence, Frame, Member
from allaboard.facts.stack import EnclosingLoop

MAX_SHOWN_LOOPS = 2
"""Loops that a sentence names."""
LEFT_LOOP_ADVICE = (
    "let all ranks go through that loop equally often: as many batches on each (DistributedSampler, "
    "drop_last, an equal number of steps), and let them decide together where one of them stops early"
)
"""What to do about a member that has left a loop earlier than others."""


def left_loops(ahead: Member, behind: Member) -> tuple[EnclosingLoop, ...]:
    """Return the loops of one function that ``behind`` is in and ``ahead`` is past, the outermost first; ()
    if there are none.

    Both are followed from the outermost frame to where they part, in one function.
    """
    if ahead.stack is None or behind.stack is None:
        return ()
    frame_pairs = zip(ahead.stack.frames[::-1], behind.stack.frames[::-1], strict=False)
    for depth, (frame_ahead, frame) in enumerate(frame_pairs):
        if (frame_ahead.file, frame_ahead.function) != (frame.file, frame.function):
            return ()
        if frame_ahead.line < frame.line:
            return ()
        if frame_ahead.line > frame.line:
            shared, *called = behind.stack.frames[::-1][depth:]
            loops = _loops_of(shared, behind.stack.loops)
            # Around both is what the function repeats for all of them; what it has called is not shared.
            loops_past = tuple(loop for loop in loops if loop.last_line < frame_ahead.line)
            return loops_past or next(
                filter(None, (_loops_of(f, behind.stack.loops) for f in called)), ()
            )
    return ()


def _loops_of(frame: Frame, loops: Sequence[EnclosingLoop]) -> tuple[EnclosingLoop, ...]:
    """Return those of the loops that are in this frame's function, the outermost first."""
    function = frame.file, frame.function
    return tuple(f for f in reversed(loops) if (f.head.file, f.head.function) == function)


def left_loop_clause(ahead: Sequence[Member], members: Iterable[Member]) -> str:
    """Return "rank 1 has left the loop at train.py:12 (for x, y in data), which rank 0 is still in"; ""
    unless all of ``ahead`` have left a loop that one of the others is in."""
    for member_behind in members:
        all_left = {left_loops(member, member_behind) for member in ahead}
        loops = all_left.pop() if len(all_left) == 1 else ()
        if not loops:
            continue
        verb, noun = "have" if ahead[1:] else "has", "loops" if loops[1:] else "loop"
        places = ", ".join(
            f"{loop.head.file.rpartition('/')[2]}:{loop.head.line} ({loop.head.text.rstrip(':')})"
            for loop in loops[:MAX_SHOWN_LOOPS]
        )
        still_in = name_by_rank((member_behind,))
        return f"{name_by_rank(ahead)} {verb} left the {noun} at {places}, which {still_in} is still in"
    return ""


def left_loop_evidence(ahead: Sequence[Member], members: Iterable[Member]) -> tuple[Evidence, ...]:
    """Return that clause as evidence; () if there is none."""
    clause = left_loop_clause(ahead, members)
    return (Evidence(clause, "stacks, source"),) if clause else ()
