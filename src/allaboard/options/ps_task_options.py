"""The tasks of a job with parameter servers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from allaboard.options.usage_error import raise_usage_error


def roles(
    given: argparse.Namespace, words: list[str], dashes: bool
) -> tuple[tuple[tuple[str, int], ...], frozenset[int]]:
    """The tasks of a job with parameter servers, and those that allaboard serves; else nothing."""
    if given.ps is None:
        for option, asked in (("--chief", given.chief), ("--evaluator", given.evaluator)):
            if asked:
                raise_usage_error(
                    f"{option} goes with --ps P; try: allaboard run --ps 1 -n 2 {option} train.py"
                )
        if given.n is not None and not dashes and given.module is None:
            _without_servers(str(given.n), words)
        return (), frozenset()
    from allaboard.launch.parameter_servers.ps_cluster import InvalidRolesError, served, tasks
    from allaboard.launch.parameter_servers.script_scan import read

    if dashes:
        raise_usage_error(
            "--ps starts SCRIPT or -m MODULE; a command after -- starts its own processes"
        )
    workers = None if given.n is None else str(given.n)
    script = f"-m {given.module}" if given.module else words[0] if words else "train.py"
    reading = read(Path(words[0]) if words and given.module is None else None)
    try:
        found = tasks(given.ps, workers, given.chief, given.evaluator, reading, script)
    except InvalidRolesError as error:
        raise_usage_error(str(error))
    return found, served(found, given.ps_server, reading)


def served_here(
    environment: Mapping[str, str], given: argparse.Namespace, words: list[str]
) -> frozenset[int]:
    """Whether allaboard runs the server loop in place of the script, as the task of a cluster that somebody
    else starts: {0}, or nothing."""
    from allaboard.configuration import resolve

    task_type = resolve(environment).job
    job = task_type.text if task_type is not None else ""
    if job not in ("ps", "worker") or not words or given.module is not None:
        return frozenset()
    from allaboard.launch.parameter_servers.ps_cluster import served
    from allaboard.launch.parameter_servers.script_scan import read

    reading = read(Path(words[0]))
    return served(((job, 0),), given.ps_server, reading) if reading.needs_servers else frozenset()


def _without_servers(n: str, words: list[str]) -> None:
    """A note, since a script may choose by an option what it builds on."""
    from allaboard.launch.parameter_servers.ps_cluster import without
    from allaboard.launch.parameter_servers.script_scan import read

    said = without(n, read(Path(words[0])), words[0]) if words else ""
    if said:
        sys.stderr.write(f"allaboard: {said}\n")
