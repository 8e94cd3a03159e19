"""The roll call of a job without the job: a stand-in for this host's task is started and watched."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from allaboard.options.option_values import check_coordinator, read_secret, read_tls_files
from allaboard.options.run_folder import create_run_folder
from allaboard.options.usage_error import UsageError
from allaboard.preflight.task import Task

if TYPE_CHECKING:
    from allaboard.facts import Preflight


def run_preflight(options: argparse.Namespace) -> int:
    """Call the roll as one task of the job, print the summary, and return the exit code.

    Raises:
        UsageError: the environment describes no task of a job, or an option cannot be used.
    """
    from allaboard.cluster.transport.etcd_url import is_etcd_url
    from allaboard.configuration.launcher_context import read_launcher_context
    from allaboard.launch.launch_plan import LaunchPlan
    from allaboard.launch.local_workers import WorkerStartError, launch_workers, new_job_id
    from allaboard.launch.script_interpreter import script_interpreter
    from allaboard.preflight import remote_lifetime, stand_in
    from allaboard.preflight.task import stand_in_settings, task_variables
    from allaboard.preflight.task_selection import choose_mode, select_task

    if options.leashed:
        remote_lifetime.print_host_identity()
    job_secret = (
        remote_lifetime.read_secret_line() if options.leashed else read_secret(options.secret_file)
    )
    certificates = read_tls_files(options)
    meeting = check_coordinator(options.coordinator, certificates)
    in_etcd = is_etcd_url(meeting)
    task = select_task(options, meeting, in_etcd)
    depth = choose_mode(options, task)
    job_id = new_job_id()
    variables = {
        **{k: v for k, v in task_variables(task).items() if k not in os.environ},
        "ALLABOARD_PREFLIGHT": stand_in_settings(task, depth, options.bound),
    }
    joined = read_launcher_context({**os.environ, **variables})
    assert joined is not None
    # Where the launcher's own store has the port, the way to the meeting is posted in it.
    address = "" if joined.has_launcher_store else joined.address or task.meeting_address
    joined = joined._replace(rank=task.rank, address=address)
    plan = LaunchPlan(
        command=[script_interpreter(), str(Path(stand_in.__file__))],
        size=1,
        is_size_given=False,
        gate="cluster",
        run_dir=create_run_folder(options.run_dir, job_id),
        job=job_id,
        user_variables=variables,
    )
    try:
        started = launch_workers(plan)
    except WorkerStartError as error:
        raise UsageError(str(error)) from None
    if options.leashed:
        # Not earlier: the reaper is forked while this process has one thread.
        remote_lifetime.end_when_stdin_closes()
    # Loaded only now, while the stand-in starts and imports its framework.
    from allaboard.agent.background_check import CheckSubject
    from allaboard.agent.main import run_agent
    from allaboard.agent.options import Options
    from allaboard.preflight.summary import exit_code_for_size

    agent_options = Options(
        timeout=options.timeout,
        timeout_hard=options.timeout,
        grace=2.0,
        stop_on_hang=True,
        hang_after=options.bound,
        stop_on_error=True,
        verbose=options.verbose,
        joined=joined,
        secret=job_secret,
        tls=certificates,
        coordinator=meeting,
        # The variables that were added for the stand-in repeat these under other names.
        check_subject=CheckSubject(variables=dict(os.environ)),
        exit_code_of=exit_code_for_size(task.size),
    )
    code = run_agent(started, agent_options)
    _print_summary(
        options, plan.run_dir, task._replace(meeting_address=meeting) if in_etcd else task, depth
    )
    return code


def output_file_of(file: Path, rank: int) -> Path:
    """Return the file that this rank writes: for rank 0 the file itself, else found.rank2.json beside it."""
    return file if rank <= 0 else file.with_name(f"{file.stem}.rank{rank}{file.suffix}")


def _page(preflight: Preflight) -> str:
    # Only who asks for a page waits for what it takes to make one.
    from allaboard.faces.report.preflight_page import render_preflight_page
    from allaboard.rules.engine.catalogue import rule_pages

    return render_preflight_page(
        preflight, rule_pages({f.rule: f.name for f in preflight.findings})
    )


def _print_summary(options: argparse.Namespace, run_folder: Path, task: Task, mode: str) -> None:
    from allaboard.diagnosis.logs.run_folder import read_run
    from allaboard.preflight.summary import summarize_run
    from allaboard.report.preflight import as_json, as_text

    summary = summarize_run(read_run(run_folder), task, mode, os.uname().nodename)
    renderers = {"text": as_text, "json": as_json, "html": _page}
    text = renderers[options.format](summary)
    if options.output is not None:
        output_file_of(options.output, task.rank).write_text(
            text, encoding="utf-8", errors="replace"
        )
        return
    if task.rank > 0 and options.format != "text":
        return  # under srun all ranks share task standard output: their documents would mix
    sys.stdout.write(text)
    sys.stdout.flush()
