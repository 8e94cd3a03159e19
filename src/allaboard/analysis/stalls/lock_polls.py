"""Waits for file locks of which the kernel does not know: a library that asks again and again, and sleeps in
between (SQLite, filelock). Pure.
"""

from __future__ import annotations

from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.facts import JobView, LockWait, Member
from allaboard.late_pattern import compile_late

_DATABASE_LINE = compile_late(r"\.(?:execute\w{0,12}|commit|backup|connect)\s*\(")
"""Calls of a database in C, which leave no frame; only the source line shows them."""
_DATABASE_FUNCTION = compile_late(r"(?:do_)?(?:execute\w{0,12}|commit)$")
"""Functions of libraries around a database, in which such a call is made."""


def find_lock_wait(view: JobView, member: Member) -> LockWait | None:
    """Return for which lock the member waits, if that is known; a wait that is only inferred counts if the
    member is at a place that asks for locks."""
    wait = next((w for w in view.lock_waits if w.waiter == member.event_key), None)
    if wait is None or not wait.polls or classify_stack(member.stack) is Spot.FILE_LOCK:
        return wait
    return wait if _is_at_database(member) and wait.has_open else None


def polls_for_lock(view: JobView, member: Member) -> bool:
    """Return True if the member asks for a lock again and again that another process holds."""
    wait = find_lock_wait(view, member)
    return wait is not None and wait.polls


def _is_at_database(member: Member) -> bool:
    leaf = member.stack.frames[0] if member.stack is not None and member.stack.frames else None
    if leaf is None or classify_stack(member.stack) is not Spot.USER:
        return False
    if leaf.is_user:
        return _DATABASE_LINE.search(leaf.text) is not None
    return _DATABASE_FUNCTION.match(leaf.function) is not None
