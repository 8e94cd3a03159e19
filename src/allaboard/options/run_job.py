"""What `allaboard run` does once its options are parsed: plan the job, start it, and watch it."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from allaboard.errors import describe_os_error
from allaboard.options.option_values import (
    check_coordinator,
    check_feed_address,
    check_values_variable,
    parse_variables,
    read_secret,
    read_tls_files,
)
from allaboard.options.ps_recovery_options import choose_recovery
from allaboard.options.ps_task_options import (
    choose_ps_tasks,
    choose_served_task,
    note_missing_servers,
)
from allaboard.options.reporting import choose_reporters, start_reporters
from allaboard.options.restart_options import (
    DEFAULT_STOPPED_AFTER_S,
    choose_restart_policy,
    choose_standby_ranks,
    choose_warm,
)
from allaboard.options.run_folder import create_run_folder, working_folder
from allaboard.options.scheduler_options import check_scheduler_options, choose_scheduler_options
from allaboard.options.usage_error import raise_usage_error
from allaboard.options.worker_command import script_of_command, worker_command

if TYPE_CHECKING:
    from pathlib import Path

    from allaboard.agent.background_check import CheckSubject
    from allaboard.agent.options import Options
    from allaboard.agent.output.output_selection import OutputSelection
    from allaboard.cluster.transport.tls import TlsFiles
    from allaboard.configuration.launcher_context import LauncherContext
    from allaboard.launch.launch_plan import LaunchPlan
    from allaboard.launch.sidecar_process import Sidecar
    from allaboard.options.web_options import PagePort
    from allaboard.policy.restart.restart_policy import RestartPolicy

DEFAULT_TIMEOUT_S = 60.0
"""How long a worker that has not started is waited for, unless --timeout says another time."""


def run_job(options: argparse.Namespace, command_line: list[str], is_command: bool) -> int:
    """Start the job, watch it, and return the exit code.

    ``command_line`` is the script or the module's arguments, or with ``is_command`` a whole command.

    Raises:
        UsageError: the options contradict each other, or the workers cannot be started.
    """
    from allaboard.launch.local_workers import WorkerStartError, launch_workers

    gc.disable()  # until all is imported: `reduce_gc_frequency` of the agent
    working_folder()
    check_scheduler_options(options)
    joined = None if options.ps is not None else _joined(options)
    certificates = read_tls_files(options)
    has_other_hosts = options.coordinator or joined is not None
    address = check_coordinator(options.coordinator, certificates) if has_other_hosts else ""
    meeting = Meeting(read_secret(options.secret_file), address, certificates)
    is_sealed = bool(meeting.secret or meeting.tls)
    options.feed = check_feed_address(options.feed, is_sealed)
    page = _open_page(options, joined, certificates)
    reporters = choose_reporters(options, joined, {**os.environ, **parse_variables(options.env)})
    policy = choose_restart_policy(options, joined, is_sealed)
    plan = _plan_job(options, command_line, is_command, joined is not None, policy)
    try:
        started = launch_workers(plan)
    except WorkerStartError as error:
        raise_usage_error(str(error))
    try:
        note_missing_servers(options, command_line, is_command)
        if page is not None:
            _serve_page(page, plan.run_dir, certificates)
        sidecars = start_reporters(reporters, plan.run_dir)
        # The workers are starting; only now is loaded what it takes to watch them.
        from allaboard.agent.background_check import CheckSubject
        from allaboard.agent.main import run_agent

        check_subject = CheckSubject(
            script=script_of_command(command_line, options.module, is_command),
            command=tuple(command_line) if is_command else (),
            are_servers_started=bool(plan.served) or joined is not None,
            variables={**os.environ, **plan.user_variables} if joined is not None else {},
        )
        agent_options = _agent_options(
            options, is_command, joined, check_subject, meeting, policy, sidecars
        )
        return run_agent(started, agent_options)
    except OSError as error:
        started.close_and_wait()
        raise_usage_error(
            f"the workers were ended, since they cannot be watched: {describe_os_error(error)}"
        )


def _open_page(
    options: argparse.Namespace, joined: LauncherContext | None, tls: TlsFiles | None
) -> PagePort | None:
    """Return the port of the page; None if none is wanted. Of a job that a launcher starts, the first rank's
    agent serves it: it shows all ranks, and the agents of one host cannot share a port."""
    if options.web is None or (joined is not None and joined.rank > 0):
        return None
    from allaboard.options.web_options import open_page_port

    return open_page_port(options.web, tls)


def _serve_page(page: PagePort, run_dir: Path, tls: TlsFiles | None) -> None:
    from allaboard.options.page_process import start_page_process

    failure = start_page_process(page, run_dir, tls)
    sys.stderr.write(f"allaboard: {failure or f'this run as a page: {page.url}'}\n")
    sys.stderr.flush()


def _plan_job(
    options: argparse.Namespace,
    command_line: list[str],
    is_command: bool,
    is_joined: bool,
    policy: RestartPolicy,
) -> LaunchPlan:
    """Return what will be started. Everything that is wrong with it is reported before anything starts."""
    from allaboard.launch.launch_plan import LaunchPlan
    from allaboard.launch.local_workers import new_job_id

    tasks, served = choose_ps_tasks(options, command_line, is_command)
    workers = len(tasks) or options.n or 1
    if is_command and options.module is not None:
        raise_usage_error("-m MODULE and -- COMMAND exclude each other; write -- python -m MODULE")
    report = options.report
    if report is not None and not report.absolute().parent.is_dir():
        raise_usage_error(
            f"--report {report}: there is no folder {report.parent}; mkdir -p {report.parent}"
        )
    environment = {**os.environ, **parse_variables(options.env)} if is_joined else None
    if environment is not None and not tasks and not is_command:
        served = choose_served_task(environment, options, command_line)
    recovery = choose_recovery(options, policy, command_line, environment)
    selection = _output_selection(options)
    job_id = new_job_id()
    return LaunchPlan(
        command=worker_command(command_line, options.module, is_command, options.n),
        size=workers,
        is_size_given=options.n is not None or bool(tasks),
        gate=_gate(options, is_joined, bool(tasks)),
        user_variables=check_values_variable(options.check_values) | parse_variables(options.env),
        run_dir=create_run_folder(options.run_dir, job_id),
        job=job_id,
        tasks=tasks,
        served=served,
        on_terminal=selection.choose_terminals(tasks, workers) if has_terminal() else frozenset(),
        standby=recovery.standby,
        standby_ranks=choose_standby_ranks(options, workers, bool(tasks), is_command),
        is_warm=choose_warm(options, workers, bool(tasks), is_command),
        stays_warm=policy.allowed,
        snapshot_interval_s=recovery.snapshot,
        tasks_may_return=policy.allowed and (bool(tasks) or is_joined),
    )


def _agent_options(
    options: argparse.Namespace,
    is_command: bool,
    joined: LauncherContext | None,
    check_subject: CheckSubject,
    meeting: Meeting,
    policy: RestartPolicy,
    sidecars: tuple[Sidecar, ...],
) -> Options:
    from allaboard.agent.options import Options

    return Options(
        timeout=DEFAULT_TIMEOUT_S if options.timeout is None else options.timeout,
        timeout_hard=options.timeout_hard,
        grace=options.grace,
        observe=options.observe,
        stop_on_hang=options.on_hang == "stop",
        hang_after=options.hang_after,
        report_path=options.report,
        wrapped=is_command and options.n is None,
        feed_address=options.feed,
        events_path=options.events,
        typed_options=tuple(options.typed_options),
        verbose=options.verbose,
        quiet=options.quiet,
        selection=_output_selection(options),
        progress=options.progress,
        joined=joined,
        strict=options.timeout is not None,
        secret=meeting.secret,
        tls=meeting.tls,
        coordinator=meeting.coordinator,
        mixed=options.mixed,
        check_subject=check_subject,
        passes_through=options.n is None and options.ps is None,
        restarts=policy,
        sidecars=sidecars,
        scheduler=choose_scheduler_options(options),
        stopped_after=DEFAULT_STOPPED_AFTER_S
        if options.stopped_after is None
        else options.stopped_after,
    )


def has_terminal() -> bool:
    """Return True if both standard output and standard error are terminals."""
    return all(os.isatty(stream) for stream in (1, 2))


def _output_selection(options: argparse.Namespace) -> OutputSelection:
    from allaboard.agent.output.output_selection import DEFAULT_SELECTION, parse_selection

    if options.show is None:
        return DEFAULT_SELECTION._replace(prefix=not options.no_prefix)
    try:
        return parse_selection(options.show, prefix=not options.no_prefix)
    except ValueError as error:
        raise_usage_error(f'--show "{options.show}": {error}')


class Meeting(NamedTuple):
    """The way in which the agents of several hosts find and trust each other."""

    secret: bytes
    """The job's secret; b"" if it has none."""
    coordinator: str
    """HOST:PORT or an etcd URL; "" for the framework's own address."""
    tls: TlsFiles | None
    """This host's certificate; None without TLS."""


def _joined(options: argparse.Namespace) -> LauncherContext | None:
    """Return the job of which the environment makes this process a member; None if there is none.

    With -n all members are started here, whatever the environment says.
    """
    if options.n is not None:
        return None
    # Not before: all that reads configurations would delay the workers of -n.
    from allaboard.configuration.launcher_context import read_launcher_context

    return read_launcher_context({**os.environ, **parse_variables(options.env)})


def _gate(options: argparse.Namespace, is_joined: bool, has_roles: bool) -> str:
    """Return which members wait at the roll call, as `Plan.gate` has it."""
    if options.observe:
        return ""
    return "all" if options.n is not None or has_roles else "cluster" if is_joined else "local"
