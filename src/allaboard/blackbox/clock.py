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

BIRTH_TOLERANCE_S = 1.0
"""Seconds by which a birth may be off before the clock is taken for another one."""
MAX_CLOCK_DISTANCE_S = 1e10
"""Seconds; no clock is farther away than one that counts from 1970 in the place of the start."""


def clock_offset(born: float, pid: int) -> float:
    """How far the clock of the box of ``pid`` is ahead of ours (s), 0 where it is ours. It is to be asked as
    soon as the box is there: of another clock it takes this moment for that of the birth."""
    now = time.monotonic()
    process_stat = proc.read_stat(pid)
    if process_stat is None or not isfinite(born) or abs(born - now) > MAX_CLOCK_DISTANCE_S:
        return 0.0
    suspended_s = time.clock_gettime(time.CLOCK_BOOTTIME) - now
    started = process_stat.start_ticks / proc.TICKS_PER_SECOND - suspended_s
    return 0.0 if started - BIRTH_TOLERANCE_S <= born <= now + BIRTH_TOLERANCE_S else born - now


def shift_times(box: BoxReading, shift_s: float) -> BoxReading:
    """The reading with all its times later by so many seconds: by our clock, where its own is behind."""
    op, raised, groups = box.op, box.raised, box.groups
    if op is None and raised is None and not groups:  # all of those who stand at the door
        since, step_at = box.phase_since + shift_s, box.step_at + shift_s
        return msgspec.structs.replace(box, phase_since=since, step_at=step_at)
    return msgspec.structs.replace(
        box,
        phase_since=box.phase_since + shift_s,
        step_at=box.step_at + shift_s,
        op=msgspec.structs.replace(op, since=op.since + shift_s) if op else None,
        raised=msgspec.structs.replace(raised, at=raised.at + shift_s) if raised else None,
        groups=tuple(msgspec.structs.replace(g, since=g.since + shift_s) for g in groups),
    )
