"""Translation of a black box's times to this process's clock.

All processes of a host share CLOCK_MONOTONIC, except those in a time namespace of their own and
those under a library that fakes it. A box holds its writer's birth by the writer's clock: by our
clock nobody is born before the kernel started the process, or later than now.
"""

from __future__ import annotations

import time
from math import inf, isfinite

import msgspec

from allaboard.blackbox.snapshot import BoxReading
from allaboard.hosts import proc

BIRTH_TOLERANCE_S = 1.0
"""How far a birth may be off before the clock counts as another one."""
MAX_CLOCK_DISTANCE_S = 1e10
"""No clock is farther away than one that counts from 1970 instead of from the start of the host."""


def clock_offset(born: float, pid: int) -> float:
    """Return how far the clock of the box of ``pid`` is ahead of ours (s); 0 if it is the same
    clock.

    Call it as soon as the box is there: for another clock, this moment is taken for the birth.
    """
    now = time.monotonic()
    process_stat = proc.read_stat(pid)
    if process_stat is None or not isfinite(born) or abs(born - now) > MAX_CLOCK_DISTANCE_S:
        return 0.0
    # /proc counts start times from the boot with suspended time (proc(5)), CLOCK_MONOTONIC without.
    suspended_s = time.clock_gettime(time.CLOCK_BOOTTIME) - now
    started = process_stat.start_ticks / proc.TICKS_PER_SECOND - suspended_s
    return 0.0 if started - BIRTH_TOLERANCE_S <= born <= now + BIRTH_TOLERANCE_S else born - now


def shift_times(box: BoxReading, shift_s: float, latest: float = inf) -> BoxReading:
    """Return the reading with all its times shifted by ``shift_s``; none is later than ``latest`` then."""
    op, raised, groups = box.op, box.raised, box.groups
    if op is None and raised is None and not groups:  # all of those who stand at the door
        since, step_at = min(box.phase_since + shift_s, latest), box.step_at + shift_s
        return msgspec.structs.replace(box, phase_since=since, step_at=step_at)
    return msgspec.structs.replace(
        box,
        phase_since=min(box.phase_since + shift_s, latest),
        step_at=min(box.step_at + shift_s, latest),
        op=msgspec.structs.replace(op, since=min(op.since + shift_s, latest)) if op else None,
        raised=msgspec.structs.replace(raised, raised_at=min(raised.raised_at + shift_s, latest))
        if raised
        else None,
        groups=tuple(
            msgspec.structs.replace(g, since=min(g.since + shift_s, latest)) for g in groups
        ),
    )
