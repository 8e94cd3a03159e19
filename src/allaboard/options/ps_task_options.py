"""The tasks of a job with parameter servers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from allaboard.options.usage_error import raise_usage_error


def choose_ps_tasks(
    options: argparse.Namespace, words: list[str], is_command: bool
) -> tuple[tuple[tuple[str, int], ...], frozenset[int]]:
    """The tasks of a job with parameter servers, and those that allaboard serves; else nothing."""
    if options.ps is None:
        for option, count in (("--chief", options.chief), ("--evaluator", options.evaluator)):
            if count:
                raise_usage_error(
                    f"{option} goes with --ps P; try: allaboard run --ps 1 -n 2 {option} train.py"
                )
        if options.n is not None and not is_command and options.module is None:
            _note_missing_servers(str(options.n), words)
        return (), frozenset()
    from allaboard.launch.parameter_servers.ps_cluster import InvalidRolesError, served, tasks
    from allaboard.launch.parameter_servers.script_scan import read

    if is_command:
        raise_usage_error(
            "--ps starts SCRIPT or -m MODULE; a command after -- starts its own processes"
        )
    workers = None if options.n is None else str(options.n)
    script = f"-m {options.module}" if options.module else words[0] if words else "train.py"
    reading = read(Path(words[0]) if words and options.module is None else None)
    try:
        ps_tasks = tasks(options.ps, workers, options.chief, options.evaluator, reading, script)
    except InvalidRolesError as error:
        raise_usage_error(str(error))
    return ps_tasks, served(ps_tasks, options.ps_server, reading)


def choose_served_task(
    environment: Mapping[str, str], options: argparse.Namespace, words: list[str]
) -> frozenset[int]:
    """Whether allaboard runs the server loop in place of the script, as the task of a cluster that somebody
    else starts: {0}, or nothing."""
    from allaboard.configuration import resolve

    task_type = resolve(environment).job
    job = task_type.text if task_type is not None else ""
    if job not in ("ps", "worker") or not words or options.module is not None:
        return frozenset()
    from allaboard.launch.parameter_servers.ps_cluster import served
    from allaboard.launch.parameter_servers.script_scan import read

    reading = read(Path(words[0]))
    return served(((job, 0),), options.ps_server, reading) if reading.needs_servers else frozenset()


def _note_missing_servers(worker_count: str, words: list[str]) -> None:
    """A note, since a script may choose by an option what it builds on."""
    from allaboard.launch.parameter_servers.ps_cluster import without
    from allaboard.launch.parameter_servers.script_scan import read

    note = without(worker_count, read(Path(words[0])), words[0]) if words else ""
    if note:
        sys.stderr.write(f"allaboard: {note}\n")
