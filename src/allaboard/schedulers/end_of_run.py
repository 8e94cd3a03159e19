"""Tells the scheduler of the end of a run. An error here is a line for the user, and never more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from allaboard.facts import Finding, Report
from allaboard.facts.outcome import Retry
from allaboard.report.plain_text import clean
from allaboard.schedulers.scheduler_options import SchedulerOptions
from allaboard.schedulers.slurm_exclusion import exclusion_line, slurm_nodes
from allaboard.schedulers.slurm_job import read_slurm_job
from allaboard.schedulers.slurm_requeue import (
    comment_command,
    decide_requeue,
    requeue_commands,
    run_commands,
    show_job,
)
from allaboard.schedulers.termination_message import termination_message, write_termination_message

_ADVICE = {
    Retry.HERE: "try again",
    Retry.ELSEWHERE: "try again on other hosts",
    Retry.RESOURCES: "do not try again with the same resources",
    Retry.NEVER: "do not try again as it is",
}
"""The verdicts as the last lines of a run say them."""


def advice_lines(
    report: Report, options: SchedulerOptions, environment: Mapping[str, str]
) -> list[str]:
    """Return the last lines of a run that say what to do with the job; none if it did not fail."""
    advice = report.retry
    if advice is None:
        return []
    lines = []
    if options.exit_codes:
        because = f" ({advice.rule})" if advice.rule else f" ({clean(advice.reason)})"
        lines.append(f"exit code {report.exit_code}: {_ADVICE[advice.verdict]}{because}")
    if advice.hosts:
        lines.append(f"hosts at fault: {clean(', '.join(advice.hosts))}")
        lines += filter(None, [exclusion_line(advice.hosts, environment)])
    return lines


def tell_scheduler(
    report: Report,
    finding: Finding | None,
    options: SchedulerOptions,
    environment: Mapping[str, str],
) -> Iterator[str]:
    """Tell the scheduler of the end; yield what was done, and what went wrong with it, as lines.

    A requeued job is ended at once: the line that says so comes before.
    """
    if options.termination_path is not None:
        text = termination_message(report, finding)
        yield from filter(None, [write_termination_message(options.termination_path, text)])
    job = read_slurm_job(environment)
    if job is None or report.retry is None:
        return
    advice = report.retry
    if options.slurm_comment and job.is_first_task:
        error = run_commands([comment_command(job, advice.rule, advice.reason)])
        yield from (
            [f"the comment of Slurm job {job.job_id} was not written: {error}"] if error else []
        )
    decision = decide_requeue(advice, job, options.requeue_on, options.max_requeues)
    if decision.reason:
        yield f"Slurm job {job.job_id} {decision.reason}"
    if decision.is_wanted:
        nodes = slurm_nodes(advice.hosts, environment)
        shown = show_job(job) if nodes else ""
        if error := run_commands(requeue_commands(job, nodes, shown)):
            yield f"Slurm job {job.job_id} could not be requeued: {error}"
