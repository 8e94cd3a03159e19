"""Advice for where a rank has ended, or is through, and others still wait: they may be where only some ranks
come to, as in an evaluation, a prediction or a sharded model's save after the training."""

from __future__ import annotations

from collections.abc import Iterable

from allaboard.facts import Frame, Member


def user_frame_of(member: Member) -> Frame | None:
    """The line of the user's code at which it raised, or else is."""
    if member.raised is not None:
        return member.raised.where
    return member.stack.user if member.stack is not None else None


def rank_conditional_hint(ended_member: Member, waiting: Iterable[Member]) -> str:
    """What to look at beside numbers of steps, where one of the others has made no more of them than the one
    that is gone; else "": that one has left out a step."""
    for member in waiting:
        user_frame = user_frame_of(member) if member.step == ended_member.step else None
        if user_frame is not None:
            return (
                f"; if only some ranks come to {user_frame.file}:{user_frame.line}, let all or none"
            )
    return ""
