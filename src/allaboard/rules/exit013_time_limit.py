"""The batch system ended the job because its time limit was reached.

## Why it matters
At the time limit, Slurm sends SIGTERM to all processes of the job, and SIGKILL some seconds later. A worker
that ends in a collective then looks like one that failed, and a script that did not get its time looks like
one that hung. Neither is the case: the job needs more time, or must go on in a next job.

## What to do
Ask for more time (`sbatch --time`), or save a checkpoint before the limit and go on in a next job:
`#SBATCH --signal=USR1@120` sends SIGUSR1 two minutes before it, which allaboard passes to the workers.

The time limit is read from SLURM_JOB_END_TIME, which Slurm sets since 23.02. For an older Slurm, set it in
the batch script: `export SLURM_JOB_END_TIME=$(date -d "$(squeue -h -j $SLURM_JOB_ID -o %e)" +%s)`.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Relations, Rule
from allaboard.facts import Claim, Evidence, JobView, Retry, Severity, Stage
from allaboard.facts.samples import NOW, ended_member, sample_job, sample_member

EARLY_S = 2.0
"""How long before the limit a signal may come that is due to it: the clocks of the hosts and of slurmctld are
not quite equal."""
LATE_S = 120.0
"""How long after the limit: slurmctld looks at the limits of all jobs twice a minute, and may be busy."""


def check(view: JobView) -> Iterator[Claim]:
    limit_at, signalled_at = view.time_limit_at, view.interrupted_at
    if limit_at is None or signalled_at is None:
        return
    late_s = signalled_at - limit_at
    if not -EARLY_S <= late_s <= LATE_S:
        return
    members = [m for m in view.members if not m.is_on_other_host]
    steps = max((m.step for m in members), default=0)
    yield Claim(
        summary="the job was ended by its time limit, and not by a failure or a hang",
        who=tuple(m.who for m in members),
        evidence=(
            Evidence(
                f"the signal came {abs(late_s):.0f} s {'after' if late_s >= 0 else 'before'} the limit",
                "SLURM_JOB_END_TIME",
            ),
            *((Evidence(f"{steps} steps were done", "black box"),) if steps else ()),
        ),
        fix="sbatch --time=... with more time; or #SBATCH --signal=USR1@120, save a checkpoint on SIGUSR1, "
        "and go on in a next job",
        severity=Severity.WARNING,
        since=limit_at,
    )


def _view(signalled_at: float | None, limit_at: float | None) -> JobView:
    return sample_job(
        ended_member(0, ended_at=NOW, signal=15, ours=True),
        interrupted_at=signalled_at,
        time_limit_at=limit_at,
    )


RULE = Rule(
    stage=Stage.EXIT,
    reads=JobView,
    check=check,
    fires_on={
        "Slurm's SIGTERM": (
            _view(NOW - 1.0, NOW - 20.0),
            "the job was ended by its time limit, and not by a failure or a hang",
        ),
    },
    silent_on={
        "cancelled before": _view(NOW - 1.0, NOW + 60.0),
        "no limit is known": _view(NOW - 1.0, None),
        "it failed before": _view(None, NOW + 60.0),
        "it trains": sample_job(sample_member(0), time_limit_at=NOW + 60.0),
    },
    since="0.1",
    retry=Retry.HERE,
    unstaged="no framework has a part in it: a real Slurm's time limit is in tests/zoo/test_slurm_requeue.py",
    relations=Relations(interruption=True, explains_signal=True),
)
