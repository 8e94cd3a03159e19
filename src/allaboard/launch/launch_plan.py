"""What is to be started on this host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(kw_only=True)
class LaunchPlan:
    """What to start: ``size`` workers of ``command``; ``given`` when the user asked for -n.

    ``gate``: "all" where every member is ours, "local" where the members' own addresses decide,
    "" to hold nobody. ``extra`` are the user's own variables. ``tasks`` are job and index of each
    worker where the job has roles (parameter servers), ``served`` the numbers of those for which
    allaboard runs the server loop. ``round`` counts the launches of this job, from 0. ``standby``: a
    process waits to take the place of a task that ends; ``returns``: tasks may come back alone;
    ``snapshot``: seconds between two snapshots of the servers' variables, 0 for none.
    """

    command: list[str]
    size: int
    is_size_given: bool
    gate: str
    run_dir: Path
    job: str
    user_variables: Mapping[str, str] = field(default_factory=dict)
    tasks: tuple[tuple[str, int], ...] = ()
    served: frozenset[int] = frozenset()
    round: int = 0
    standby: bool = False
    tasks_may_return: bool = False
    snapshot_interval_s: float = 0.0
