"""The batch system ended the job because its time limit was reached, or told it that the limit is near.

## Why it matters
Before the limit, Slurm sends the signal of `--signal` if one was asked for. A script without a handler is
killed by it; many that have one save a checkpoint, ask to be queued again and exit with a code of their own.
At the time limit, Slurm sends SIGTERM to all processes of the job, and SIGKILL some seconds later. A worker
that ends in a collective then looks like one that failed, and a script that did not get its time looks like
one that hung. Neither is the case: the job needs more time, or must continue in another job.

## What to do
Ask for more time (`sbatch --time`), or save a checkpoint before the limit and continue in another job:
`#SBATCH --signal=USR1@120` sends SIGUSR1 two minutes before it to all tasks that srun started, and allaboard
passes it to the workers: `signal.signal(signal.SIGUSR1, save)`. With `--signal=B:USR1@120` only the batch
script gets it, and nothing reaches the workers.

The time limit is read from SLURM_JOB_END_TIME, which Slurm sets since 23.02. For an older Slurm, set it in
the batch script: `export SLURM_JOB_END_TIME=$(date -d "$(squeue -h -j $SLURM_JOB_ID -o %e)" +%s)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from allaboard.analysis.failures.time_limit_warning import EARLY_S, LATE_S, ended_on_warning
from allaboard.analysis.member_names import name_first_members
from allaboard.analysis.stalls.interrupted_stall import is_interrupted_in_stall
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.contracts import Relations, Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member, Retry, Severity
from allaboard.facts.samples import (
    NOW,
    USER,
    ended_member,
    sample_job,
    sample_member,
    sample_stack,
    stalled_job,
    waiting_member,
)
from allaboard.facts.signal_name import signal_name


def check(view: JobView) -> Iterator[Claim]:
    warned = [m for m in view.members if ended_on_warning(view, m)]
    if warned:
        yield _claim_warned(view, warned)
        return
    limit_at, signalled_at = view.time_limit_at, view.interrupted_at
    if limit_at is None or signalled_at is None:
        return
    late_s = signalled_at - limit_at
    if not -EARLY_S <= late_s <= LATE_S:
        return
    members = [m for m in view.members if not m.is_on_other_host]
    steps = max((m.step for m in members), default=0)
    yield Claim(
        summary=f"the job was ended by its time limit, {_how_it_went(view)}",
        who=tuple(m.who for m in members),
        evidence=(
            Evidence(
                f"the signal came {abs(late_s):.0f} s {'after' if late_s >= 0 else 'before'} the limit",
                "SLURM_JOB_END_TIME",
            ),
            *((Evidence(f"{steps} steps were done", "black box"),) if steps else ()),
        ),
        fix="sbatch --time=... with more time; or #SBATCH --signal=USR1@120, save a checkpoint on SIGUSR1, "
        "and go on from it in the next job",
        severity=Severity.WARNING,
        since=limit_at,
    )


def _how_it_went(view: JobView) -> str:
    if is_interrupted_in_stall(view):
        return f"and had made no progress for {view.now - stalled_since(view):.0f} s before it"
    return "and not by a failure or a hang"


def _claim_warned(view: JobView, ended: list[Member]) -> Claim:
    """Report members that ended on the signal which comes before the limit."""
    assert view.time_limit_at is not None
    killed = [m for m in ended if m.exit is not None and m.exit.signal is not None]
    first_end = min((m.exit for m in ended if m.exit is not None), key=lambda e: e.ended_at)
    name = signal_name(first_end.signal or view.warned_by)
    warned_at = first_end.ended_at if view.warned_at is None else view.warned_at
    left_s = max(0.0, view.time_limit_at - warned_at)
    codes = sorted({m.exit.code for m in ended if m.exit is not None and m.exit.code is not None})
    how = (
        f"{'were' if len(killed) > 1 else 'was'} killed by {name}, for which no handler was set"
        if killed
        else f"exited with code {', '.join(map(str, codes))} after {name}"
    )
    steps = max(m.step for m in ended)
    return Claim(
        summary=f"the job ended {left_s:.0f} s before its time limit, on the signal that announces it: "
        f"{name_first_members(killed or ended)} {how}",
        who=tuple(m.who for m in ended),
        evidence=(
            Evidence(f"{name} came {left_s:.0f} s before the limit", "SLURM_JOB_END_TIME"),
            *((Evidence(f"{steps} steps were done", "black box"),) if steps else ()),
        ),
        fix=f"signal.signal(signal.{name}, save)   # in the script; the next job goes on from what it saved"
        if killed
        else "let the next job go on from the checkpoint; exit code 0 if the script has saved one",
        severity=Severity.WARNING,
        since=warned_at,
        certainty=Certainty.LIKELY if view.warned_at is None else Certainty.CERTAIN,
    )


def _warned_view(*members: Member, limit_in_s: float = 55.0, **changes: Any) -> JobView:
    return sample_job(
        *members,
        **({"warned_at": NOW - 6.0, "warned_by": 10, "time_limit_at": NOW + limit_in_s} | changes),
    )


def _view(signalled_at: float | None, limit_at: float | None) -> JobView:
    return sample_job(
        ended_member(0, ended_at=NOW, signal=15, ours=True),
        interrupted_at=signalled_at,
        time_limit_at=limit_at,
    )


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "Slurm ended the job with SIGTERM after its time limit": (
            _view(NOW - 1.0, NOW - 20.0),
            "the job was ended by its time limit, and not by a failure or a hang",
        ),
        "the job had stood still for 30 seconds when its time limit was reached": (
            stalled_job(
                waiting_member(0),
                sample_member(1, stack=sample_stack(USER)),
                progress_at=NOW - 30.0,
                interrupted_at=NOW - 0.1,
                time_limit_at=NOW - 1.0,
            ),
            "the job was ended by its time limit, and had made no progress for 30 s before it",
        ),
        "SIGUSR1 kills the workers of a script that has no handler for it": (
            _warned_view(ended_member(0, signal=10), ended_member(1, signal=10)),
            "the job ended 61 s before its time limit, on the signal that announces it: worker 0, "
            "worker 1 were killed by SIGUSR1, for which no handler was set",
        ),
        "a worker is killed by SIGUSR1 before its agent has received the signal": (
            _warned_view(
                ended_member(0, ended_at=NOW - 6.0, signal=10), warned_at=None, warned_by=0
            ),
            "the job ended 61 s before its time limit, on the signal that announces it: worker 0 was "
            "killed by SIGUSR1, for which no handler was set",
        ),
        "a script that saves on SIGUSR1, exits with code 85 and is queued again": (
            _warned_view(
                ended_member(0, code=85), ended_member(1, raised=("SystemExit", "85"), code=85)
            ),
            "the job ended 61 s before its time limit, on the signal that announces it: worker 0, "
            "worker 1 exited with code 85 after SIGUSR1",
        ),
    },
    silent_on={
        "a worker raised ValueError after the signal": _warned_view(
            ended_member(0, raised=("ValueError", "x"))
        ),
        "a worker exited with code 85 before the signal": _warned_view(
            ended_member(0, ended_at=90.0, code=85)
        ),
        "a worker crashed with SIGSEGV after the signal": _warned_view(ended_member(0, signal=11)),
        "SIGUSR1 killed a worker two hours before the time limit": _warned_view(
            ended_member(0, signal=10), limit_in_s=7200.0
        ),
        "a worker trains on after the signal": _warned_view(sample_member(0)),
        "a worker exits with code 0 after the signal": _warned_view(ended_member(0, code=0)),
        "a worker exited with code 85 after a signal, and no time limit is known": _warned_view(
            ended_member(0, code=85), time_limit_at=None
        ),
        "the job was ended by a signal one minute before its time limit": _view(
            NOW - 1.0, NOW + 60.0
        ),
        "the job was ended by a signal, and no time limit is known": _view(NOW - 1.0, None),
        "allaboard ended the job by itself before its time limit": _view(None, NOW + 60.0),
        "the job trains, one minute before its time limit": sample_job(
            sample_member(0), time_limit_at=NOW + 60.0
        ),
    },
    retry=Retry.HERE,
    unstaged="no framework has a part in it: a real Slurm's time limit is in tests/zoo/test_slurm_requeue.py",
    relations=Relations(interruption=True, explains_signal=True),
)
