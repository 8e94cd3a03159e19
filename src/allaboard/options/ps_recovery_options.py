"""How the tasks of a job with parameter servers come back, as the options say it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from allaboard.options.usage_error import raise_usage_error
from allaboard.policy.restart.restart_policy import RestartPolicy

LEAST, MOST = 0.1, 86400.0
"""Seconds between two snapshots."""


class ComingBack(NamedTuple):
    """``standby``: a process waits to take the place of a task that ends; ``snapshot``: seconds between two
    snapshots of the servers' variables, 0 for none."""

    standby: bool
    snapshot: float


def coming_back(
    given: argparse.Namespace,
    policy: RestartPolicy,
    words: list[str],
    joined: Mapping[str, str] | None,
) -> ComingBack:
    """What is kept ready; refuses what goes with nothing that is asked. ``joined`` is the environment where
    it describes a task of a cluster that somebody else starts."""
    script = words[0] if words else "train.py"
    for option, value in (("--ps-snapshot", given.ps_snapshot), ("--ps-standby", given.ps_standby)):
        if value is None:
            continue
        asked = f"{option} {value}"
        example = f"try: allaboard run --ps 1 -n 2 --on-failure restart {asked} {script}"
        if given.ps is None and joined is None:
            raise_usage_error(f"{asked} goes with --ps P, which is not given; {example}")
        if given.ps is None and joined is not None:
            without = _without_servers(joined, given, words)
            if without:
                raise_usage_error(
                    f"{asked} is for jobs with parameter servers, and {without}; leave {option} out"
                )
        if not policy.allowed:
            raise_usage_error(
                f"{asked} goes with --on-failure restart, which is not given; {example}"
            )
    # Who starts a task on a host of its own may have counted its memory: there it is asked for.
    waits = given.ps_standby != "off" if given.ps is not None else given.ps_standby == "on"
    return ComingBack(
        standby=policy.allowed and waits,
        snapshot=_seconds(given.ps_snapshot, script) if given.ps_snapshot is not None else 0.0,
    )


def _without_servers(
    environment: Mapping[str, str], given: argparse.Namespace, words: list[str]
) -> str:
    """By what it is known that the joined job has no servers; "" where it may have some."""
    from allaboard.configuration import resolve

    cluster = resolve(environment).cluster
    if cluster:
        return "" if "ps" in cluster else "TF_CONFIG lists no ps"
    # The script may make its cluster from something else.
    from allaboard.launch.parameter_servers.script_scan import read

    reading = read(Path(words[0]) if words and given.module is None else None)
    some = not reading.known or reading.serves or reading.needs_servers is not None
    return "" if some else f"{words[0]} makes no server"


def _seconds(text: str, script: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not LEAST <= value <= MOST:
        raise_usage_error(
            f"--ps-snapshot {text}: seconds between two snapshots, from {LEAST:g} to {MOST:g}; "
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
