"""How a process spent its last seconds, measured from outside while the job moves."""

from __future__ import annotations

import msgspec


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """Over the last ``span`` s: ``cpu`` in cores of the process with all its threads, ``allowed``
    the cores that it may run on (sched_getaffinity(2), 0 where not known), ``inside`` the share of
    looks that found it inside an operation (Session.run, a collective)."""

    span: float = 0.0
    cpu: float = 0.0
    allowed: int = 0
    inside: float = 0.0
