"""A worker crashed while its interpreter was shutting down, after it had finished training.

## Why it matters
The training is done, but the launcher reports a failure, because native threads of a framework were still
alive while Python shut down. PyTorch with gloo does so occasionally (`terminate called without an active
exception`, SIGABRT): a thread of a process group that outlived `destroy_process_group` needs the GIL while it
ends. The results are complete; only the exit code is wrong.

Under allaboard this is rare, because it gives such threads 5 ms with the GIL at the end. Without it, a short
script that does not call `destroy_process_group` crashed in one run of ten.

## What to do
Call `dist.destroy_process_group()` as the last statement, and let the model go out of scope before that
(train in a function). Also `import torch.distributed.nn` before init: otherwise DDP's constructor imports it
later, and its default arguments then keep the process group alive to the end.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.failures.failure_causality import crashed_at_exit
from allaboard.contracts import Rule
from allaboard.facts import Claim, Evidence, JobView, Member, Phase, Severity
from allaboard.facts.samples import ended_member, sample_job, waiting_member
from allaboard.facts.signal_name import signal_name


def check(view: JobView) -> Iterator[Claim]:
    for member in view.members:
        if not crashed_at_exit(member):
            continue
        assert member.exit is not None and member.exit.signal is not None
        name = signal_name(member.exit.signal)
        yield Claim(
            summary=f"{member.who.name} crashed ({name}) during shutdown, after {_describe_progress(member)}",
            who=(member.who,),
            evidence=(
                Evidence(f"{name} in phase leaving, no exception", "wait status, black box"),
                Evidence(member.exit.last_line or "it printed nothing", "its last line"),
            ),
            fix="import torch.distributed.nn before init, train in a function, "
            "call destroy_process_group() last",
            severity=Severity.WARNING,
            since=member.exit.ended_at,
        )


def _describe_progress(member: Member) -> str:
    if member.step:
        return f"completing all its {member.step} steps"
    return "its script had finished"


_LEFT = {"phase": Phase.LEAVING}
_IDLE = {"step": 0, "ops": 0}
RULE = Rule(
    reads=JobView,
    check=check,
    needs=("exit",),
    fires_on={
        "SIGABRT in the shutdown of a worker that has made 40 steps": (
            sample_job(
                ended_member(0, code=0, member=_LEFT), ended_member(1, signal=6, member=_LEFT)
            ),
            "worker 1 crashed (SIGABRT) during shutdown, after completing all its 40 steps",
        ),
        "SIGABRT in the shutdown of a worker whose steps were not counted": (
            sample_job(
                ended_member(0, code=0, member=_LEFT),
                ended_member(1, signal=6, member=_LEFT | {"step": 0}),
            ),
            "worker 1 crashed (SIGABRT) during shutdown, after its script had finished",
        ),
    },
    silent_on={
        "a worker that made no step and called no collective": sample_job(
            ended_member(0, code=0), ended_member(1, signal=6, member=_LEFT | _IDLE)
        ),
        "SIGABRT while the worker was training": sample_job(
            waiting_member(0), ended_member(1, signal=6)
        ),
        "SIGABRT after an exception of the worker": sample_job(
            waiting_member(0), ended_member(1, signal=6, raised=("KeyError", "x"), member=_LEFT)
        ),
        "SIGKILL during the shutdown": sample_job(
            waiting_member(0), ended_member(1, signal=9, member=_LEFT)
        ),
    },
    drill=("aborts-at-exit",),
)
