"""When a job counts as stalled, and when to sample its stacks. Pure but for its counters."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from allaboard.analysis.collectives.absent_from_collective import members_to_sample
from allaboard.analysis.collectives.unsampled_calls import members_to_sample_at_calls
from allaboard.analysis.parameter_servers import members_not_started
from allaboard.analysis.stalls.stall import IDLE_CORES
from allaboard.analysis.stalls.stalled_members import stalled_members
from allaboard.coordinator.process_record import ProcessRecord
from allaboard.facts import JobView, Phase

MIN_STALL_S = 3.0
"""Least silence after which a job with short steps counts as stalled."""
STALL_STEPS = 6.0
"""Silence, in median steps of the job, after which it counts as stalled."""
FIRST_STEP_STALL_S = 10.0
"""Silence after which a job counts as stalled during its first step, when compilers run."""
UNSEEN_STALL_S = 30.0
"""Silence after which a job counts as stalled if neither steps nor collectives can be seen."""
SAMPLE_INTERVAL_S = 0.2
"""Time between two samples; the agent polls every quarter of a second then."""
FREQUENT_SAMPLES = 24
"""Samples of one stall that are taken at this interval."""
LATE_SAMPLE_INTERVAL_S = 10.0
"""Time between two samples after that."""
ROLL_CALL_INTERVAL_S = 2.0
"""Time between two samples while members wait at the gate for others."""
FIRST_ROLL_CALL_INTERVAL_S, FIRST_ROLL_CALL_SAMPLES = 1.0, 8
"""Time between the first samples there, and how many they are: a member that does nothing is to be known
soon."""


def stall_after(records: Iterable[ProcessRecord], median_step: float | None) -> float:
    """Return the silence (s) after which a job counts as stalled."""
    if median_step is not None:
        return max(MIN_STALL_S, STALL_STEPS * median_step)
    boxes = [r.box for r in records if r.box is not None]
    return FIRST_STEP_STALL_S if any(b.ops or b.step for b in boxes) else UNSEEN_STALL_S


class StallDetector:
    """Decides when stacks are to be sampled: only while nothing moves, or a member is waited for."""

    def __init__(self) -> None:
        self.sample_count = 0
        """Samples of the present stall."""
        self.last_sample_at = float("-inf")
        self.stuck_pids: tuple[int, ...] = ()
        """The processes that stand while others move."""

    @property
    def needs_samples_soon(self) -> bool:
        """True if a part of the job stands, and has not been sampled often enough yet."""
        return bool(self.stuck_pids) and self.sample_count < FREQUENT_SAMPLES

    def note_progress(self) -> None:
        """Begin anew, so that the next stall is sampled frequently again."""
        if not self.stuck_pids:
            self.sample_count = 0

    def pids_to_sample(self, view: JobView) -> tuple[int, ...]:
        """Return the processes to sample now; none most of the time."""
        # A command that has started no member may be the program itself: it waits for its own processes.
        is_program = not any(m.declared is not None for m in view.members)
        members = [m for m in view.alive if not m.launcher or (is_program and m.probed)]
        # From half of that time on, so that the stacks are known once the job counts as stalled.
        is_silent = view.now - view.progress_at >= view.stall_after / 2
        stuck_pids = () if is_silent else _stuck_pids(view)
        if stuck_pids != self.stuck_pids:
            self.stuck_pids, self.sample_count = stuck_pids, 0
        is_frequent = self.sample_count < FREQUENT_SAMPLES
        interval = SAMPLE_INTERVAL_S if is_frequent else LATE_SAMPLE_INTERVAL_S
        if any(m.phase is Phase.ARRIVED for m in members):
            is_silent = view.now - view.progress_at >= ROLL_CALL_INTERVAL_S / 2
            is_first = self.sample_count < FIRST_ROLL_CALL_SAMPLES
            interval = FIRST_ROLL_CALL_INTERVAL_S if is_first else ROLL_CALL_INTERVAL_S
            # Members at the gate wait for us: only the others' stacks say anything.
            members = [m for m in members if m.phase is not Phase.ARRIVED]
        is_needed = bool(members) and (is_silent or bool(stuck_pids))
        if not is_needed or view.now - self.last_sample_at < interval:
            return ()
        self.last_sample_at = view.now
        self.sample_count += 1
        return stuck_pids if stuck_pids and not is_silent else tuple(m.event_key for m in members)


def _stuck_pids(view: JobView) -> tuple[int, ...]:
    """Return the processes for which a timeout of the others has run out, before those are ended; or those
    that have just come to different calls; else the processes that stand while others move.

    They are returned as early as all processes would be in a job that stands as a whole, so that their stacks
    are known once they count as stalled.
    """
    absent = members_to_sample(view) or members_to_sample_at_calls(view)
    if absent:
        return tuple(m.event_key for m in absent)
    early_stall_after = view.stall_after / 2
    if any(view.now - m.moved_at >= early_stall_after for m in view.alive):
        stalled = stalled_members(msgspec.structs.replace(view, stall_after=early_stall_after))
        if stalled:
            return tuple(m.event_key for m in stalled)
    # A member that computes is on its way, and a sample would only hold it up.
    idle_starters = (
        m
        for m in members_not_started(view)
        if m.cpu < IDLE_CORES and view.now - m.moved_at >= ROLL_CALL_INTERVAL_S
    )
    return tuple(m.event_key for m in idle_starters)
