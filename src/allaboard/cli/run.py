"""`allaboard run`: start the workers, watch them, and end with the job's exit code."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from allaboard.options.option_values import check_values, coordinator, secret, tls, variables
from allaboard.options.ps_recovery_options import coming_back
from allaboard.options.ps_task_options import roles, served_here
from allaboard.options.restart_options import STOPPED_AFTER, restarts
from allaboard.options.run_folder import run_dir, working_folder
from allaboard.options.run_options import add_arguments, note_late_options, split_at_script
from allaboard.options.usage_error import usage
from allaboard.options.worker_command import command, script

if TYPE_CHECKING:
    import argparse

    from allaboard.agent.background_check import CheckSubject
    from allaboard.agent.options import Options
    from allaboard.cluster.transport.tls import TlsFiles
    from allaboard.configuration.launcher_context import Described
    from allaboard.launch.launch_plan import Plan
    from allaboard.policy.restart.restart_policy import Restarts


__all__ = ["add_arguments", "main"]


def main(words: Sequence[str]) -> int:
    """Start the workers, watch them, and return the exit code. Raises UsageError."""
    from allaboard.options.command_parser import build_parser

    parser = build_parser("run", add_arguments)
    options_end, command_words, dashes = split_at_script(parser, words)
    options = parser.parse_checked(words[:options_end])
    if not dashes:
        note_late_options(parser, words, options_end, options.module)
    return _run(options, command_words, dashes)


def _run(given: argparse.Namespace, words: list[str], dashes: bool) -> int:
    from allaboard.launch.local_workers import WorkerStartError, launch

    working_folder()
    joined = None if given.ps is not None else _joined(given)
    files = tls(given)
    meets = given.coordinator or joined is not None
    where = coordinator(given.coordinator, files) if meets else ""
    meeting = Meeting(secret(given.secret_file), where, files)
    policy = restarts(given, joined, bool(meeting.secret or meeting.tls))
    plan = _plan(given, words, dashes, joined is not None, policy)
    try:
        started = launch(plan)
    except WorkerStartError as error:
        usage(str(error))
    # The workers are starting; only now is loaded what it takes to watch them.
    from allaboard.agent.background_check import CheckSubject
    from allaboard.agent.main import run_agent

    subject = CheckSubject(
        script=script(words, given.module, dashes),
        variables={**os.environ, **plan.extra} if joined is not None else {},
    )
    return run_agent(started, _options(given, dashes, joined, subject, meeting, policy))


def _plan(
    given: argparse.Namespace, words: list[str], dashes: bool, joined: bool, policy: Restarts
) -> Plan:
    """What is started. Everything that is wrong with it is said before anything is."""
    from allaboard.launch.launch_plan import Plan
    from allaboard.launch.local_workers import new_job_id

    tasks, served = roles(given, words, dashes)
    workers = len(tasks) or given.n or 1
    if dashes and given.module is not None:
        usage("-m MODULE and -- COMMAND exclude each other; write -- python -m MODULE")
    report = given.report
    if report is not None and not report.absolute().parent.is_dir():
        usage(f"--report {report}: there is no folder {report.parent}; mkdir -p {report.parent}")
    environment = {**os.environ, **variables(given.env)} if joined else None
    if environment is not None and not tasks and not dashes:
        served = served_here(environment, given, words)
    coming = coming_back(given, policy, words, environment)
    job = new_job_id()
    return Plan(
        command=command(words, given.module, dashes),
        size=workers,
        given=given.n is not None or bool(tasks),
        gate=_gate(given, joined, bool(tasks)),
        extra=check_values(given.check_values) | variables(given.env),
        run_dir=run_dir(given.run_dir, job),
        job=job,
        tasks=tasks,
        served=served,
        standby=coming.standby,
        snapshot=coming.snapshot,
        returns=policy.allowed and (bool(tasks) or joined),
    )


def _options(
    given: argparse.Namespace,
    dashes: bool,
    joined: Described | None,
    subject: CheckSubject,
    meeting: Meeting,
    policy: Restarts,
) -> Options:
    from allaboard.agent.options import Options

    return Options(
        timeout=60.0 if given.timeout is None else given.timeout,
        timeout_hard=given.timeout_hard,
        grace=given.grace,
        observe=given.observe,
        stop_on_hang=given.on_hang == "stop",
        hang_after=given.hang_after,
        report_path=given.report,
        wrapped=dashes and given.n is None,
        verbose=given.verbose,
        joined=joined,
        strict=given.timeout is not None,
        secret=meeting.secret,
        tls=meeting.tls,
        coordinator=meeting.coordinator,
        check_subject=subject,
        passes_through=given.n is None and given.ps is None,
        restarts=policy,
        stopped_after=STOPPED_AFTER if given.stopped_after is None else given.stopped_after,
    )


class Meeting(NamedTuple):
    """How the agents of several hosts find and trust each other."""

    secret: bytes
    coordinator: str
    tls: TlsFiles | None


def _joined(given: argparse.Namespace) -> Described | None:
    """Without -n an environment that describes a cluster means members that somebody else starts."""
    from allaboard.configuration.launcher_context import described

    return None if given.n is not None else described({**os.environ, **variables(given.env)})


def _gate(given: argparse.Namespace, joined: bool, roles: bool) -> str:
    """Who is held at the roll call."""
    if given.observe:
        return ""
    return "all" if given.n is not None or roles else "cluster" if joined else "local"
