"""The job-wide view that the startup, runtime and exit rules read."""

from __future__ import annotations

from operator import attrgetter

import msgspec

from allaboard.facts.interruption import Interruption
from allaboard.facts.link import Call, Holder, Knock, Link, Usual
from allaboard.facts.member import Member
from allaboard.facts.memo import cached_per_view
from allaboard.facts.rollback import Setback
from allaboard.facts.usage import Use


class LockWait(msgspec.Struct, frozen=True):
    """One process that waits for a file lock, as /proc/locks shows it; ``holders`` are pids on its host.

    ``waiter`` is its pid; in a JobView what `Member.called` is."""

    waiter: int
    holders: tuple[int, ...]
    path: str


class JobView(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Everything that is known of a job at ``now`` (s, CLOCK_MONOTONIC).

    ``launched`` workers were started by us, 0 where another launcher starts them. ``rolled_at`` is
    when the roll call was complete; ``progress_at`` when any member last did anything new;
    ``stall_after`` the silence (s) after which the job counts as standing still, from its own
    median step. ``timeout`` bounds the wait for a member that was never heard of, ``timeout_hard``
    that for one that is alive and does not come.
    ``ending``: allaboard is ending the job, since ``ending_since`` (s) where that is known.

    ``joined``: this host takes part in a job that somebody else starts on several; ``leads`` where
    all meet here, so that this view shows every host's members; ``place``: as the user named it, where the
    user did. ``call`` is how our attempts to reach the meeting place stand, ``links`` who reached whom (none
    where they are thousands and all work well, which is told in ``usual``), ``knocks`` who came and is no
    member, ``holder`` who has the port that is needed here, ``clocks`` how far each host's wall clock is
    ahead of ours (s).

    ``uses`` are what processes and hosts use of what is limited, and how that went in the last minute;
    ``setbacks`` are the times that the training went back to an earlier step. ``comes_back``: from what the
    values of a lost server come back when it is started again here ("checkpoint", "snapshot"); "" where
    nothing is started again. ``interruptions``: the other hosts that were interrupted since all were aboard.
    """

    now: float
    launched: int
    members: tuple[Member, ...]
    launched_at: float = 0.0
    timeout: float = 60.0
    timeout_hard: float | None = None
    rolled_at: float | None = None
    progress_at: float = 0.0
    median_step: float | None = None
    stall_after: float = 5.0
    lock_waits: tuple[LockWait, ...] = ()
    ending: bool = False
    ending_since: float | None = None
    ended: bool = False
    joined: bool = False
    leads: bool = False
    place: str = ""
    call: Call | None = None
    links: tuple[Link, ...] = ()
    usual: Usual | None = None
    knocks: tuple[Knock, ...] = ()
    holder: Holder | None = None
    clocks: dict[str, float] = {}
    uses: tuple[Use, ...] = ()
    setbacks: tuple[Setback, ...] = ()
    comes_back: str = ""
    interruptions: tuple[Interruption, ...] = ()

    @property
    @cached_per_view
    def alive(self) -> tuple[Member, ...]:
        return tuple(m for m in self.members if m.alive)

    def told(self, field: str) -> bool:
        """Whether any member has this field of Member filled, so that it is not empty, 0 or None."""
        known = self._told
        if field not in known:
            known[field] = any(map(attrgetter(field), self.members))
        return known[field]

    @property
    @cached_per_view
    def _told(self) -> dict[str, bool]:
        return {}

    @property
    def stalled(self) -> bool:
        """Whether the job as a whole has stood still for longer than its own rhythm explains."""
        return bool(self.alive) and self.now - self.progress_at >= self.stall_after
