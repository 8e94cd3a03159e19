"""When a job counts as standing still, and when to look at its stacks. Pure but for its counters."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from allaboard.analysis.collectives.absent_from_collective import members_to_sample
from allaboard.analysis.parameter_servers.parameter_servers import not_begun
from allaboard.analysis.stalls.stall import IDLE_CORES
from allaboard.analysis.stalls.stalled_members import stalled_members
from allaboard.coordinator.process_record import ProcessRecord
from allaboard.facts import JobView, Phase

QUICK = 3.0
"""Seconds of silence after which a job with short steps counts as standing still."""
RHYTHM = 6.0
"""... and how many of its own median steps."""
FIRST = 10.0
"""... and while its first step lasts, when compilers run."""
BLIND = 30.0
"""... and where neither steps nor collectives can be seen."""
LOOK_EVERY = 0.2
"""Seconds between two looks; the agent comes by every quarter of a second then."""
LOOKS = 24
LOOK_AGAIN = 10.0
"""After this many looks at a job that stands still, one every so many seconds is enough."""
WAITED = 2.0
"""While somebody is awaited at the start, where the others are is looked at this often (s), ..."""
WAITS, FIRST_WAITS = 1.0, 8
"""... and so often at first (s, looks): one that does nothing is to be known soon."""


def stall_after(records: Iterable[ProcessRecord], median_step: float | None) -> float:
    """The silence (s) after which a job counts as standing still."""
    if median_step is not None:
        return max(QUICK, RHYTHM * median_step)
    boxes = [r.box for r in records if r.box is not None]
    return FIRST if any(b.ops or b.step for b in boxes) else BLIND


class StallDetector:
    """Says when stacks are due: only while nothing moves, or somebody is awaited."""

    def __init__(self) -> None:
        self.sample_count = 0
        self.last_sample_at = float("-inf")
        self.stuck_pids: tuple[int, ...] = ()

    @property
    def needs_samples_soon(self) -> bool:
        """Whether a part of the job stands, and has not been looked at often enough yet."""
        return bool(self.stuck_pids) and self.sample_count < LOOKS

    def note_progress(self) -> None:
        """Something new happened: a later silence is looked at afresh."""
        if not self.stuck_pids:
            self.sample_count = 0

    def pids_to_sample(self, view: JobView) -> tuple[int, ...]:
        """The processes to look at now; none most of the time."""
        alive = [m for m in view.alive if not m.launcher]
        silent = view.now - view.progress_at >= view.stall_after / 2
        part = () if silent else _part(view)
        if part != self.stuck_pids:
            self.stuck_pids, self.sample_count = part, 0
        every = LOOK_EVERY if self.sample_count < LOOKS else LOOK_AGAIN
        if any(m.phase is Phase.ARRIVED for m in alive):
            silent = view.now - view.progress_at >= WAITED / 2
            every = WAITS if self.sample_count < FIRST_WAITS else WAITED
            alive = [m for m in alive if m.phase is not Phase.ARRIVED]  # those are with us
        if not (alive and (silent or part)) or view.now - self.last_sample_at < every:
            return ()
        self.last_sample_at = view.now
        self.sample_count += 1
        return part if part and not silent else tuple(m.called for m in alive)


def _part(view: JobView) -> tuple[int, ...]:
    """Those for whom the others' timeout ran out, before they are ended; else the processes that stand while
    others move; as early as all are looked at where nobody moves, so that
    what is to be known of them is known once they count as standing."""
    late = members_to_sample(view)
    if late:
        return tuple(m.called for m in late)
    sooner = view.stall_after / 2
    if any(view.now - m.moved_at >= sooner for m in view.alive):
        stand = stalled_members(msgspec.structs.replace(view, stall_after=sooner))
        if stand:
            return tuple(m.called for m in stand)
    # Who computes is on its way, and a look would only hold it up.
    away = (m for m in not_begun(view) if m.cpu < IDLE_CORES and view.now - m.moved_at >= WAITED)
    return tuple(m.called for m in away)
