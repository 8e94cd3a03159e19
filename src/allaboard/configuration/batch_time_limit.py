"""When the batch system will end this job because its time is up."""

from __future__ import annotations

from collections.abc import Mapping

from allaboard.facts import whole_number

END_TIME_VARIABLE = "SLURM_JOB_END_TIME"
"""Seconds since 1970 of the job's projected end: sbatch(1), since Slurm 23.02."""
MAX_AHEAD_S = 366 * 86400.0
"""A limit further away is none: Slurm writes a year for UNLIMITED."""


def read_time_limit(environment: Mapping[str, str], utc_s: float, now: float) -> float | None:
    """Return the time of the limit (s, CLOCK_MONOTONIC); None if there is none, or it is not known.

    ``utc_s`` is the wall time (s since 1970) at the moment ``now`` of CLOCK_MONOTONIC.
    """
    end = whole_number(environment.get(END_TIME_VARIABLE, ""))
    if end is None or not environment.get("SLURM_JOB_ID"):
        return None
    ahead_s = end - utc_s
    return now + ahead_s if abs(ahead_s) <= MAX_AHEAD_S else None
