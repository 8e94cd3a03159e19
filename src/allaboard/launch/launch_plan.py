"""What is to be started on this host."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple


class LaunchPlan(NamedTuple):
    """A launch on this host: which workers, with what."""

    command: list[str]
    """Command of each worker; its first word is the interpreter or program."""
    size: int
    """Number of workers."""
    is_size_given: bool
    """True if the user asked for -n."""
    gate: str
    """"all" if every member is ours, "local" if the members' own addresses decide, "" to hold
    nobody."""
    run_dir: Path
    job: str
    """Id of the job."""
    user_variables: Mapping[str, str] = MappingProxyType({})
    """Variables that the user gave for the workers."""
    tasks: tuple[tuple[str, int], ...] = ()
    """Job name and index of each worker, if the job has roles (parameter servers)."""
    served: frozenset[int] = frozenset()
    """Numbers of the workers for which allaboard runs the server loop."""
    on_terminal: frozenset[int] = frozenset()
    """Numbers of the workers whose output goes to pseudo-terminals, since ours goes to a terminal."""
    round: int = 0
    """Launches of this job before this one."""
    standby: bool = False
    """True if a process waits to take the place of a task that ends."""
    standby_ranks: int = 0
    """Number of workers for which processes stand by, to start in the next round with their imports done."""
    is_warm: bool = False
    """True if the workers are forked from one process that has imported for all of them."""
    stays_warm: bool = False
    """True if that process stays for the rounds to come."""
    tasks_may_return: bool = False
    """True if a task may be restarted alone."""
    snapshot_interval_s: float = 0.0
    """Seconds between two snapshots of the servers' variables; 0 for none."""
