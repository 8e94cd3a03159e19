"""The thread that holds the lock that a member waits for, as far as the source text shows it."""

from __future__ import annotations

from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.facts import Holds, Member


def find_own_lock(member: Member) -> Holds | None:
    """Return the main thread of a member if it waits for a lock that it holds itself, else None."""
    if (
        classify_stack(member.stack) is not Spot.LOCK
        or member.stack is None
        or not member.stack.threads
    ):
        return None
    main = member.stack.threads[0]
    return main if main.held_at is not None and find_lock_holder(member) is None else None


def find_lock_holder(member: Member) -> tuple[Holds, Holds] | None:
    """Return the waiting main thread and the thread that holds its lock; None if no holder is seen."""
    if (
        classify_stack(member.stack) is not Spot.LOCK
        or member.stack is None
        or not member.stack.threads
    ):
        return None
    # The sampler puts the main thread first.
    main, *background_threads = member.stack.threads
    lock_holder = next((t for t in background_threads if main.wants in t.holds), None)
    return (main, lock_holder) if lock_holder is not None else None
