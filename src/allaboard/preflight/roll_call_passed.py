"""The result of a roll call: whether all tasks of the job met. Pure."""

from __future__ import annotations

from allaboard.facts import JobView, Phase


def is_roll_call_complete(view: JobView, size: int) -> bool:
    """Return True if a roll call of ``size`` tasks let a member through, as far as this host knows.

    The size matters: a framework that was told of fewer tasks makes a job of its own, and a member whose
    agent cannot be reached goes on alone.
    """
    # The last look at one that was let through may be older than that.
    declarations = [m.declared for m in view.members if m.phase >= Phase.ARRIVED]
    return view.rolled_at is not None and any(
        d is not None and d.world_size == size for d in declarations
    )
