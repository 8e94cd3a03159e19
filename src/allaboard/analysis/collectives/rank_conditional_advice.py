"""Advice about code that only some ranks reach, such as an evaluation or the save of a sharded model.

It applies if a rank has ended or is finished while others still wait there.
"""

from __future__ import annotations

from collections.abc import Iterable

from allaboard.facts import Frame, Member


def user_frame_of(member: Member) -> Frame | None:
    """Return the line of the user's code at which the member raised, or else is now; None if not known."""
    if member.raised is not None:
        return member.raised.where
    return member.stack.user if member.stack is not None else None


def rank_conditional_hint(ended_member: Member, waiting: Iterable[Member]) -> str:
    """Return the hint to look at the line at which a waiting member is, if only some ranks reach it.

    It applies if that member has done as many steps as the ended one. Return "" otherwise: then the ended
    member has skipped a step.
    """
    for member in waiting:
        user_frame = user_frame_of(member) if member.step == ended_member.step else None
        if user_frame is not None:
            return (
                f"; if only some ranks come to {user_frame.file}:{user_frame.line}, let all or none"
            )
    return ""
