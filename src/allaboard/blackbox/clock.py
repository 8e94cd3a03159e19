"""Whether a black box was written by our clock, and its times by ours.

All processes of a host share CLOCK_MONOTONIC, but for those in a time namespace of their own and those
under a library that fakes it. A box tells when its writer was born by the writer's clock: before the kernel
started the process, or later than now, nobody is born by ours.
"""

from __future__ import annotations

import time
from math import isfinite

import msgspec

from allaboard.blackbox.snapshot import BoxReading
from allaboard.hosts import proc

SLACK = 1.0
"""Seconds by which a birth may be off before the clock is taken for another one."""
FARTHEST = 1e10
"""Seconds; no clock is farther away than one that counts from 1970 in the place of the start."""


def ahead(born: float, pid: int) -> float:
    """How far the clock of the box of ``pid`` is ahead of ours (s), 0 where it is ours. It is to be asked as
    soon as the box is there: of another clock it takes this moment for that of the birth."""
    now = time.monotonic()
    seen = proc.read_stat(pid)
    if seen is None or not isfinite(born) or abs(born - now) > FARTHEST:
        return 0.0
    asleep = time.clock_gettime(time.CLOCK_BOOTTIME) - now
    started = seen.start_ticks / proc.TICKS_PER_SECOND - asleep
    return 0.0 if started - SLACK <= born <= now + SLACK else born - now


def timed(box: BoxReading, late: float) -> BoxReading:
    """The reading with all its times later by so many seconds: by our clock, where its own is behind."""
    op, raised, groups = box.op, box.raised, box.groups
    if op is None and raised is None and not groups:  # all of those who stand at the door
        since, at = box.phase_since + late, box.step_at + late
        return msgspec.structs.replace(box, phase_since=since, step_at=at)
    return msgspec.structs.replace(
        box,
        phase_since=box.phase_since + late,
        step_at=box.step_at + late,
        op=msgspec.structs.replace(op, since=op.since + late) if op else None,
        raised=msgspec.structs.replace(raised, at=raised.at + late) if raised else None,
        groups=tuple(msgspec.structs.replace(g, since=g.since + late) for g in groups),
    )
