"""Fresh stacks of all ranks, merged into one tree, for a client that asked for them. Pure."""

from __future__ import annotations

import msgspec

from allaboard.analysis.stacks.stack_crowds import group_member_stacks, number_unranked_members
from allaboard.analysis.stacks.stack_tree import merge_stacks
from allaboard.facts import Frame, JobView, Member, Stack
from allaboard.feed.messages import Stacks
from allaboard.feed.rank_states import shown_members

ANSWER_WITHIN_S = 5.0
"""Seconds after which a request is answered with what has come."""
ASK_AGAIN_S = 1.5
"""Seconds after which the processes that have not answered are asked again."""
MAX_NAMED_MISSING = 20
"""Processes without a stack that are named; the others are counted."""


class StackCollection:
    """The stacks that have come since one request, by event key. ``asked_at`` in seconds."""

    def __init__(self, request_id: int, asked_at: float) -> None:
        self.request_id = request_id
        self._asked_at = asked_at
        self._next_ask_at = asked_at
        self._frames: dict[int, tuple[Frame, ...]] = {}

    def add(self, key: int, frames: tuple[Frame, ...], sampled_at: float) -> None:
        """Take in a sample; one from before the request is ignored."""
        if frames and sampled_at >= self._asked_at:
            self._frames[key] = frames

    def keys_to_sample(self, now: float, view: JobView) -> tuple[int, ...]:
        """Return the processes that are to be sampled now; () if their answers are awaited, or none is
        missing."""
        missing = tuple(m.event_key for m in self._missing(view))
        if not missing or now < self._next_ask_at:
            return ()
        self._next_ask_at = now + ASK_AGAIN_S
        return missing

    def is_done(self, now: float, view: JobView) -> bool:
        """Return True if all have come, or the time is over."""
        return now >= self._asked_at + ANSWER_WITHIN_S or not self._missing(view)

    def answer(self, view: JobView, sampled_at: str) -> Stacks:
        """Return what has come, as one tree."""
        sampled = [
            msgspec.structs.replace(m, stack=Stack(frames=self._frames[m.event_key], taken_at=0.0))
            for m in shown_members(view)
            if m.event_key in self._frames
        ]
        unnamed = number_unranked_members(sampled)
        missing = [m.who.name for m in self._missing(view)]
        names = missing[:MAX_NAMED_MISSING]
        if len(missing) > MAX_NAMED_MISSING:
            names.append(f"{len(missing) - MAX_NAMED_MISSING} more")
        return Stacks(
            id=self.request_id,
            sampled_at=sampled_at,
            tree=merge_stacks(group_member_stacks(sampled, unnamed), unnamed),
            sampled=len(sampled),
            missing=tuple(names),
        )

    def _missing(self, view: JobView) -> list[Member]:
        return [m for m in shown_members(view) if m.alive and m.event_key not in self._frames]
