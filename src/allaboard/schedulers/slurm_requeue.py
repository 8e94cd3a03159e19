"""Puts a failed Slurm job back into the queue, if its user asked for it, and writes why into its comment.

scontrol(1) is the only interface that every Slurm has. A requeued job is ended by Slurm at once, and this
process with it, so nothing is done after that.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

from allaboard.facts import Retry, RetryAdvice
from allaboard.report.plain_text import clean
from allaboard.schedulers.slurm_job import SlurmJob

SCONTROL_TIMEOUT_S = 20.0
"""How long scontrol may take; slurmctld answers in milliseconds, or its own MessageTimeout (10 s) applies."""
MAX_COMMENT_LENGTH = 200
"""Characters of the comment: squeue and sacct show it in one column."""
_EXCLUDED = re.compile(r"\bExcNodeList=(\S+)")


class RequeueDecision(NamedTuple):
    """Whether the job is put back into the queue."""

    is_wanted: bool
    """True if it is."""
    reason: str = ""
    """Why, or why not although the user asked for it; "" if there is nothing to say."""


def decide_requeue(
    advice: RetryAdvice | None, job: SlurmJob, verdicts: frozenset[Retry], max_requeues: int
) -> RequeueDecision:
    """Return whether a job that ended with this advice is requeued. One task decides for all."""
    if advice is None or advice.verdict not in verdicts or not job.is_first_task:
        return RequeueDecision(False)
    if job.requeue_count >= max_requeues:
        times = f"{job.requeue_count} time{'s' if job.requeue_count != 1 else ''}"
        return RequeueDecision(
            False, f"is not requeued: it was requeued {times} (--max-requeues {max_requeues})"
        )
    count = f"requeue {job.requeue_count + 1} of {max_requeues}"
    return RequeueDecision(True, f"is requeued by --requeue-on {advice.verdict}; {count}")


def comment_command(job: SlurmJob, rule: str, reason: str) -> list[str]:
    """Return the command that writes why the job failed into its comment."""
    text = clean(f"allaboard: {rule} {reason}" if rule else f"allaboard: {reason}")
    return ["scontrol", "update", f"JobId={job.job_id}", f"Comment={text[:MAX_COMMENT_LENGTH]}"]


def requeue_commands(job: SlurmJob, nodes: Sequence[str], shown_job: str) -> list[list[str]]:
    """Return the commands that requeue the job and keep it from these nodes.

    ``shown_job`` is what ``scontrol show job`` prints: nodes that are excluded already stay so. The list of
    nodes may be changed only while the job is pending, which it is once it is requeued.
    """
    commands = [["scontrol", "requeue", job.job_id]]
    if nodes:
        match = _EXCLUDED.search(shown_job)
        excluded_before = [match[1]] if match is not None and match[1] != "(null)" else []
        excluded = ",".join([*excluded_before, *nodes])
        commands.append(["scontrol", "update", f"JobId={job.job_id}", f"ExcNodeList={excluded}"])
    return commands


def run_commands(commands: Sequence[Sequence[str]]) -> str:
    """Run them one after the other, until one fails; return what it said, "" if none did.

    They ignore SIGTERM, as Slurm sends it to all processes of a job that is requeued, and they go on if this
    process dies of it.
    """
    if shutil.which("scontrol") is None:
        return "scontrol is not in PATH"
    script = " && ".join(shlex.join(words) for words in commands)
    try:
        done = subprocess.run(
            ["sh", "-c", f"trap '' TERM; {script}"],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=SCONTROL_TIMEOUT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if not done.returncode:
        return ""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return clean(lines[-1]) if lines else f"scontrol exited with code {done.returncode}"


def show_job(job: SlurmJob) -> str:
    """Return what ``scontrol show job`` prints of the job; "" if it cannot be asked."""
    try:
        done = subprocess.run(
            ["scontrol", "show", "job", "--oneliner", job.job_id],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=SCONTROL_TIMEOUT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace")
