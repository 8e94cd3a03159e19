"""How a process spent its time, measured from outside while the job moves."""

from __future__ import annotations

import msgspec


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """Over ``span`` s: ``cpu`` in cores of the process with all its threads, ``allowed`` the cores that
    it may use (sched_getaffinity(2) and the quota of its control groups, 0 where not known), ``inside``
    the share of the time in which it was inside an operation (Session.run, a collective)."""

    span: float = 0.0
    cpu: float = 0.0
    allowed: float = 0.0
    inside: float = 0.0
