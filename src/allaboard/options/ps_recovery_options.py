"""How the tasks of a job with parameter servers come back, as the options say it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from allaboard.options.usage_error import raise_usage_error
from allaboard.policy.restart.restart_policy import RestartPolicy

MIN_SNAPSHOT_PERIOD_S, MAX_SNAPSHOT_PERIOD_S = 0.1, 86400.0
"""Seconds between two snapshots."""


class RecoveryOptions(NamedTuple):
    """``standby``: a process waits to take the place of a task that ends; ``snapshot``: seconds between two
    snapshots of the servers' variables, 0 for none."""

    standby: bool
    snapshot: float


def choose_recovery(
    options: argparse.Namespace,
    policy: RestartPolicy,
    words: list[str],
    joined: Mapping[str, str] | None,
) -> RecoveryOptions:
    """What is kept ready; refuses what goes with nothing that is asked. ``joined`` is the environment where
    it describes a task of a cluster that somebody else starts."""
    script = words[0] if words else "train.py"
    for option, value in (
        ("--ps-snapshot", options.ps_snapshot),
        ("--ps-standby", options.ps_standby),
    ):
        if value is None:
            continue
        typed = f"{option} {value}"
        example = f"try: allaboard run --ps 1 -n 2 --on-failure restart {typed} {script}"
        if options.ps is None and joined is None:
            raise_usage_error(f"{typed} goes with --ps P, which is not given; {example}")
        if options.ps is None and joined is not None:
            reason = _no_servers_reason(joined, options, words)
            if reason:
                raise_usage_error(
                    f"{typed} is for jobs with parameter servers, and {reason}; leave {option} out"
                )
        if not policy.allowed:
            raise_usage_error(
                f"{typed} goes with --on-failure restart, which is not given; {example}"
            )
    # Who starts a task on a host of its own may have counted its memory: there it is asked for.
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
    environment: Mapping[str, str], options: argparse.Namespace, words: list[str]
) -> str:
    """By what it is known that the joined job has no servers; "" where it may have some."""
    from allaboard.configuration import resolve

    cluster = resolve(environment).cluster
    if cluster:
        return "" if "ps" in cluster else "TF_CONFIG lists no ps"
    # The script may make its cluster from something else.
    from allaboard.launch.parameter_servers.script_scan import read

    reading = read(Path(words[0]) if words and options.module is None else None)
    may_have_servers = not reading.known or reading.serves or reading.needs_servers is not None
    return "" if may_have_servers else f"{words[0]} makes no server"


def _snapshot_period(text: str, script: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not MIN_SNAPSHOT_PERIOD_S <= value <= MAX_SNAPSHOT_PERIOD_S:
        raise_usage_error(
            f"--ps-snapshot {text}: seconds between two snapshots, from {MIN_SNAPSHOT_PERIOD_S:g} to {MAX_SNAPSHOT_PERIOD_S:g}; "
            f"try: allaboard run --ps 1 -n 2 --on-failure restart --ps-snapshot 10 {script}"
        )
    from allaboard.launch.parameter_servers.script_scan import read

    chief = read(Path(script)).needs_chief
    if chief is not None:
        raise_usage_error(
            f"--ps-snapshot {text} is for sessions of TensorFlow 1; {script} uses {chief[0]} "
            f"(line {chief[1]}), whose chief fails with its server and restores its own checkpoint: "
            "leave --ps-snapshot out"
        )
    return value
