"""The tasks of a job with parameter servers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from allaboard.options.usage_error import raise_usage_error


def choose_ps_tasks(
    options: argparse.Namespace, command_line: list[str], is_command: bool
) -> tuple[tuple[tuple[str, int], ...], frozenset[int]]:
    """Return the tasks (job, index) of a job with parameter servers, and the numbers of those that
    allaboard serves; empty without --ps.

    Raises:
        UsageError: the options do not make a cluster.
    """
    if options.ps is None:
        for option, count in (("--chief", options.chief), ("--evaluator", options.evaluator)):
            if count:
                raise_usage_error(
                    f"{option} needs --ps P; try: allaboard run --ps 1 -n 2 {option} train.py"
                )
        return (), frozenset()
    from allaboard.launch.parameter_servers.ps_cluster import (
        InvalidRolesError,
        cluster_tasks,
        served_tasks,
    )
    from allaboard.launch.parameter_servers.script_scan import read_script_roles

    if is_command:
        raise_usage_error(
            "--ps starts SCRIPT or -m MODULE; a command after -- starts its own processes"
        )
    workers = None if options.n is None else str(options.n)
    script = (
        f"-m {options.module}"
        if options.module
        else command_line[0]
        if command_line
        else "train.py"
    )
    reading = read_script_roles(
        Path(command_line[0]) if command_line and options.module is None else None
    )
    try:
        ps_tasks = cluster_tasks(
            options.ps, workers, options.chief, options.evaluator, reading, script
        )
    except InvalidRolesError as error:
        raise_usage_error(str(error))
    return ps_tasks, served_tasks(ps_tasks, options.ps_server, reading)


def choose_served_task(
    environment: Mapping[str, str], options: argparse.Namespace, command_line: list[str]
) -> frozenset[int]:
    """Return {0} if allaboard runs the server loop in place of the script, for a task of a cluster that a
    launcher starts; else an empty set."""
    from allaboard.configuration import resolve

    task_type = resolve(environment).job
    job = task_type.text if task_type is not None else ""
    if job not in ("ps", "worker") or not command_line or options.module is not None:
        return frozenset()
    from allaboard.launch.parameter_servers.ps_cluster import served_tasks
    from allaboard.launch.parameter_servers.script_scan import read_script_roles

    reading = read_script_roles(Path(command_line[0]))
    return (
        served_tasks(((job, 0),), options.ps_server, reading)
        if reading.needs_servers
        else frozenset()
    )


def note_missing_servers(
    options: argparse.Namespace, command_line: list[str], is_command: bool
) -> None:
    """Print a note if the script builds on parameter servers and none is started. It is no error: a script
    may choose by an option of its own what it builds on. To be called when the workers start: they need not
    wait until the script is read."""
    if options.ps is not None or options.n is None or is_command or options.module is not None:
        return
    worker_count = str(options.n)
    from allaboard.launch.parameter_servers.ps_cluster import missing_servers_note
    from allaboard.launch.parameter_servers.script_scan import read_script_roles

    note = (
        missing_servers_note(
            worker_count, read_script_roles(Path(command_line[0])), command_line[0]
        )
        if command_line
        else ""
    )
    if note:
        sys.stderr.write(f"allaboard: {note}\n")
