"""A worker crashed while its interpreter was shutting down, after it had finished training.

## Why it matters
The training is done, and still the launcher reports a failure, because native threads of a framework were
alive while Python went down. PyTorch with gloo does so now and then (`terminate called without an active
exception`, SIGABRT): a thread of a process group that outlived `destroy_process_group` needs the
interpreter lock while it ends. The results are complete; only the exit code is wrong.

Under allaboard this is rare, because such threads get 5 ms with the lock at the end. Without it, a short
script that does not call `destroy_process_group` ended like this one time in ten.

## What to do
Call `dist.destroy_process_group()` as the last statement, and let the model go out of scope before it
(train in a function of its own). Also `import torch.distributed.nn` before init: otherwise DDP's
constructor imports it later, and its default arguments then keep the process group alive to the end.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.failures.failure_causality import crashed_at_exit
from allaboard.contracts import Rule
from allaboard.facts import Claim, Evidence, JobView, Member, Phase, Severity, Stage
from allaboard.facts.samples import ended, job, waiting
from allaboard.facts.signal_name import signal_name


def check(view: JobView) -> Iterator[Claim]:
    for one in view.members:
        if not crashed_at_exit(one):
            continue
        assert one.exit is not None and one.exit.signal is not None
        name = signal_name(one.exit.signal)
        yield Claim(
            summary=f"{one.who.name} crashed ({name}) while shutting down, after {_done(one)}",
            who=(one.who,),
            evidence=(
                Evidence(f"{name} in phase leaving, no exception", "wait status, black box"),
                Evidence(one.exit.last_line or "it printed nothing", "its last line"),
            ),
            fix="import torch.distributed.nn before init, train in a function of its own, "
            "destroy_process_group() last",
            severity=Severity.WARNING,
            since=one.exit.at,
        )


def _done(one: Member) -> str:
    if one.step:
        return f"it had trained all its {one.step} steps"
    return "its program had reached its end"


_LEFT = {"phase": Phase.LEAVING}
_IDLE = {"step": 0, "ops": 0}
RULE = Rule(
    stage=Stage.EXIT,
    reads=JobView,
    check=check,
    needs=("exit",),
    fires_on={
        "gloo thread at shutdown": (
            job(ended(0, code=0, member=_LEFT), ended(1, signal=6, member=_LEFT)),
            "worker 1 crashed (SIGABRT) while shutting down, after it had trained all its 40 steps",
        ),
        "no optimizer": (
            job(ended(0, code=0, member=_LEFT), ended(1, signal=6, member=_LEFT | {"step": 0})),
            "worker 1 crashed (SIGABRT) while shutting down, after its program had reached its end",
        ),
    },
    silent_on={
        "it never worked with others": job(
            ended(0, code=0), ended(1, signal=6, member=_LEFT | _IDLE)
        ),
        "aborted while training": job(waiting(0), ended(1, signal=6)),
        "an exception came first": job(
            waiting(0), ended(1, signal=6, raised=("KeyError", "x"), member=_LEFT)
        ),
        "killed from outside": job(waiting(0), ended(1, signal=9, member=_LEFT)),
    },
    since="0.1",
    drill=("aborts-at-exit",),
)
