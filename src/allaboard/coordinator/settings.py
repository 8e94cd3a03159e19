"""What a job is started with."""

from __future__ import annotations

import msgspec

from allaboard.policy.end.end_policy import EndPolicy
from allaboard.policy.restart.restart_policy import RestartPolicy


class JobSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``wrapped``: the one worker is somebody else's launcher.
    Times in seconds; ``timeout_hard`` also bounds the wait for members that are alive. ``joined``:
    the environment says that this worker is one of a cluster, as ``rank``; ``tasks`` are job and
    index of each worker where the job has roles. ``restarts`` is what may be started again, ``restarted`` how
    often that was done before."""

    launched: int
    host: str
    policy: EndPolicy = EndPolicy()
    timeout: float = 60.0
    timeout_hard: float | None = None
    wrapped: bool = False
    joined: bool = False
    rank: int = -1
    tasks: tuple[tuple[str, int], ...] = ()
    restarts: RestartPolicy = RestartPolicy()
    restarts_used: int = 0
