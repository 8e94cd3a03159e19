"""Options that say how the tasks of a job with parameter servers come back after a failure."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from allaboard.options.usage_error import raise_usage_error
from allaboard.policy.restart.restart_policy import RestartPolicy

MIN_SNAPSHOT_PERIOD_S, MAX_SNAPSHOT_PERIOD_S = 0.1, 86400.0
"""Bounds of the time between two snapshots."""


class RecoveryOptions(NamedTuple):
    """Processes and values that are kept ready for tasks that fail."""

    standby: bool
    """True if a process waits to take the place of a task that ends."""
    snapshot: float
    """Seconds between two snapshots of the servers' variables; 0 for none."""


def choose_recovery(
    options: argparse.Namespace,
    policy: RestartPolicy,
    command_line: list[str],
    joined: Mapping[str, str] | None,
) -> RecoveryOptions:
    """Return what is kept ready for tasks that fail.

    ``joined`` is the environment if a launcher starts the cluster's tasks, else None.

    Raises:
        UsageError: an option does not fit the others or the script.
    """
    script = command_line[0] if command_line else "train.py"
    for option, value in (
        ("--ps-snapshot", options.ps_snapshot),
        ("--ps-standby", options.ps_standby),
    ):
        if value is None:
            continue
        typed = f"{option} {value}"
        example = f"try: allaboard run --ps 1 -n 2 --on-failure restart {typed} {script}"
        if options.ps is None and joined is None:
            raise_usage_error(f"{typed} needs --ps P; {example}")
        if options.ps is None and joined is not None:
            reason = _no_servers_reason(joined, options, command_line)
            if reason:
                raise_usage_error(
                    f"{typed} is for jobs with parameter servers, and {reason}; leave {option} out"
                )
        if not policy.allowed:
            raise_usage_error(f"{typed} needs --on-failure restart; {example}")
    # A standby doubles the memory. Whoever starts each task on a host of its own may have reserved memory for
    # one process only: there a standby must be asked for.
    has_standby = (
        options.ps_standby != "off" if options.ps is not None else options.ps_standby == "on"
    )
    return RecoveryOptions(
        standby=policy.allowed and has_standby,
        snapshot=_snapshot_period(options.ps_snapshot, script)
        if options.ps_snapshot is not None
        else 0.0,
    )


def _no_servers_reason(
    environment: Mapping[str, str], options: argparse.Namespace, command_line: list[str]
) -> str:
    """Return why the joined job is known to have no parameter servers; "" if it may have some."""
    from allaboard.configuration import resolve

    cluster = resolve(environment).cluster
    if cluster:
        return "" if "ps" in cluster else "TF_CONFIG lists no ps"
    # The script may make its cluster from something else.
    from allaboard.launch.parameter_servers.script_scan import read_script_roles

    reading = read_script_roles(
        Path(command_line[0]) if command_line and options.module is None else None
    )
    may_have_servers = (
        not reading.is_readable or reading.serves_itself or reading.needs_servers is not None
    )
    return "" if may_have_servers else f"{command_line[0]} makes no server"


def _snapshot_period(text: str, script: str) -> float:
    """Return the seconds between two snapshots. Raises UsageError for a time out of bounds, or a script
    that restores its own checkpoint."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not MIN_SNAPSHOT_PERIOD_S <= value <= MAX_SNAPSHOT_PERIOD_S:
        raise_usage_error(
            f"--ps-snapshot expects a number of seconds from {MIN_SNAPSHOT_PERIOD_S:g} to "
            f'{MAX_SNAPSHOT_PERIOD_S:g}, got "{text}"; '
            f"try: allaboard run --ps 1 -n 2 --on-failure restart --ps-snapshot 10 {script}"
        )
    from allaboard.launch.parameter_servers.script_scan import read_script_roles

    chief = read_script_roles(Path(script)).needs_chief
    if chief is not None:
        raise_usage_error(
            f"--ps-snapshot {text} is for sessions of TensorFlow 1; {script} uses {chief[0]} "
            f"(line {chief[1]}), whose chief fails with its server and restores its own checkpoint: "
            "leave --ps-snapshot out"
        )
    return value
