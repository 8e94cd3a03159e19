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
    policy_among_agents: EndPolicy | None = None
    """What holds instead of ``policy`` once it is seen that other agents, or nobody, started the other
    ranks; None if this agent starts all of them, or if ``joined`` says that it does not."""
    outside_step: str = ""
    """Evidence that this agent runs in a Slurm job of several tasks, but in none of its steps, or ""."""
    step_command: str = ""
    """The command of this agent with srun before it; "" unless ``outside_step`` is set."""
    time_limit_at: float | None = None
    """When the batch system ends the job because its time is up (s, CLOCK_MONOTONIC); None if unknown."""
    rank: int = -1
    """Rank of the worker in that cluster; -1 if it is not known."""
    tasks: tuple[tuple[str, int], ...] = ()
    """Job and index of each worker, if the job has roles."""
    restarts: RestartPolicy = RestartPolicy()
    """What may be restarted."""
    restarts_used: int = 0
    """Restarts in the rounds before."""
