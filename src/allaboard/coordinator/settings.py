"""What the state of a job is made with."""

from __future__ import annotations

import msgspec

from allaboard.policy.end.end_policy import EndPolicy
from allaboard.policy.restart.restart_policy import RestartPolicy


class JobSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is known of a job when its workers are launched."""

    launched: int
    """Number of workers that this agent launches."""
    host: str
    policy: EndPolicy = EndPolicy()
    timeout: float = 60.0
    """How long the roll call waits for members that were never heard of (s)."""
    timeout_hard: float | None = None
    """The same for members that are alive (s); None for no bound."""
    wrapped: bool = False
    """True if the one worker is somebody else's launcher."""
    joined: bool = False
    """True if the environment says that this worker is one of a cluster."""
    rank: int = -1
    """Rank of the worker in that cluster; -1 if it is not known."""
    tasks: tuple[tuple[str, int], ...] = ()
    """Job and index of each worker, if the job has roles."""
    restarts: RestartPolicy = RestartPolicy()
    """What may be restarted."""
    restarts_used: int = 0
    """Restarts in the rounds before."""
