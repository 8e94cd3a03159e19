"""How the tasks of a job with parameter servers come back, as the options say it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

from allaboard.launching.refusal import usage
from allaboard.recover.policy import Restarts

LEAST, MOST = 0.1, 86400.0
"""Seconds between two snapshots."""


class ComingBack(NamedTuple):
    """``standby``: a process waits to take the place of a task that ends; ``snapshot``: seconds between two
    snapshots of the servers' variables, 0 for none."""

    standby: bool
    snapshot: float


def coming_back(given: argparse.Namespace, policy: Restarts, words: list[str]) -> ComingBack:
    """What is kept ready; refuses what goes with nothing that is asked."""
    script = words[0] if words else "train.py"
    for option, value in (("--ps-snapshot", given.ps_snapshot), ("--ps-standby", given.ps_standby)):
        asked = f"{option} {value}"
        example = f"try: allaboard run --ps 1 -n 2 --on-failure restart {asked} {script}"
        if value is not None and given.ps is None:
            usage(f"{asked} goes with --ps P, which is not given; {example}")
        if value is not None and not policy.allowed:
            usage(f"{asked} goes with --on-failure restart, which is not given; {example}")
    servers = given.ps is not None and policy.allowed
    return ComingBack(
        standby=servers and given.ps_standby != "off",
        snapshot=_seconds(given.ps_snapshot, script) if given.ps_snapshot is not None else 0.0,
    )


def _seconds(text: str, script: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not LEAST <= value <= MOST:
        usage(
            f"--ps-snapshot {text}: seconds between two snapshots, from {LEAST:g} to {MOST:g}; "
            f"try: allaboard run --ps 1 -n 2 --on-failure restart --ps-snapshot 10 {script}"
        )
    from allaboard.roles.script import read

    chief = read(Path(script)).needs_chief
    if chief is not None:
        usage(
            f"--ps-snapshot {text} is for sessions of TensorFlow 1; {script} uses {chief[0]} "
            f"(line {chief[1]}), whose chief fails with its server and restores its own checkpoint: "
            "leave --ps-snapshot out"
        )
    return value
