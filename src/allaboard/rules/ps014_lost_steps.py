"""Training went back to an earlier step when a task was restarted.

allaboard sees this in the framework's own step count (TensorFlow 1's global step, which the hooks of
MonitoredTrainingSession read in every run). A task that reads a smaller number than before reads variables
that were restored or created again. The number of lost steps is known to within one for each worker. If
nothing reads that number, as in TensorFlow 2, this is not reported.

## Why it matters
A restarted server is empty, and a restarted chief restores all servers. Either way, everything learned since
the newest checkpoint is lost. If there is no checkpoint, everything is lost, and training silently begins
again at step 0: it completes, only later. While the chief is away no checkpoint is saved, and the work of the
others is lost when it returns.

No member waits any longer. What is lost are that many updates of the variables, and the time they took.

## What to do
Save more often (`save_checkpoint_steps=`, `save_checkpoint_secs=` of MonitoredTrainingSession). The most you
can lose is the work between two checkpoints, plus the work while the chief is away. Without `checkpoint_dir=`
nothing is saved at all.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.parameter_servers import has_parameter_servers, training_members
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Setback, Severity, Who
from allaboard.facts.samples import ps_member, sample_job

REPORT_DELAY_S = 1.0
"""Seconds in which all training members report: one of them may have continued first, from further back."""


def check(view: JobView) -> Iterator[Claim]:
    if not has_parameter_servers(view):
        return
    for setback in view.setbacks:
        all_reported = (
            view.ended
            or len(training_members(view)) < 2
            or view.now - setback.went_back_at >= REPORT_DELAY_S
        )
        if setback.who and setback.lost > 0 and all_reported:
            yield _claim(setback, from_start=setback.low <= len(training_members(view)))


def _claim(setback: Setback, from_start: bool) -> Claim:
    names = ", ".join(f"{w.job} {w.index}" for w in setback.who)
    where = "to its beginning" if from_start else f"to step {setback.low}"
    return Claim(
        summary=f"{setback.lost} steps were lost with {names}: training went back from step "
        f"{setback.high} {where}",
        who=setback.who,
        evidence=(
            Evidence(
                f"{setback.high}, then {setback.low}", "global step, as the session's hooks read it"
            ),
            Evidence(setback.how, "wait status"),
        ),
        fix="give MonitoredTrainingSession a checkpoint_dir=, or training starts over at every restart"
        if from_start
        else "save more often: save_checkpoint_steps= of MonitoredTrainingSession",
        severity=Severity.WARNING if from_start else Severity.INFO,
        certainty=Certainty.LIKELY,
        since=setback.went_back_at,
    )


_PS = Who(job="ps", index=0, rank=2, host="a", pid=102)
_TASKS = (ps_member("worker", 0), ps_member("worker", 1), ps_member("ps", 0))


def _back(high: int, low: int, *lost_tasks: Who) -> JobView:
    how = "ps 0 was killed by SIGKILL" if lost_tasks else ""
    return sample_job(
        *_TASKS, setbacks=(Setback(went_back_at=99.0, high=high, low=low, who=lost_tasks, how=how),)
    )


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "a server was restarted from a checkpoint that is 59 steps old": (
            _back(460, 401, _PS),
            "59 steps were lost with ps 0: training went back from step 460 to step 401",
        ),
        "a job with a single worker goes back 59 steps: this is reported at once": (
            msgspec.structs.replace(_back(460, 401, _PS), members=(_TASKS[0], _TASKS[2]), now=99.1),
            "59 steps were lost with ps 0: training went back from step 460 to step 401",
        ),
        "a server was restarted without a checkpoint": (
            _back(460, 1, _PS),
            "459 steps were lost with ps 0: training went back from step 460 to its beginning",
        ),
    },
    silent_on={
        "the program restores an earlier step by itself, and no task was lost": _back(460, 401),
        (
            "training went back half a second ago, and another worker may go back further"
        ): msgspec.structs.replace(_back(460, 401, _PS), now=99.5),
        "a server was restarted, and training continues at the same step": _back(460, 460, _PS),
        "training has never gone back": sample_job(*_TASKS),
    },
    drill=("restart-ps-lost",),
)
