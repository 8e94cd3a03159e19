"""A worker of an asynchronous job finished long before the others.

## Why it matters
No member waits for it, so nothing fails. The others continue with less help than intended, and see the data
in different proportions. Usual causes are a shard that is used up, or steps that each worker counts for
itself.

This is reported only if another worker has completed more runs than this one, and the global step has
increased since. So a worker that is only slower, or started later, and has as much to do is not reported; nor
is a chief that evaluates or exports after the training.

A worker of TensorFlow 2's ParameterServerStrategy does not end by itself: it runs what the chief schedules.
If one exited with code 0, it has left `server.join()` or never reached it, and the chief silently gives its
share to the others.

No member waits. What is lost is this worker's share of the work, for as long as the others take.

## What to do
Give every worker the same amount of data (`Dataset.repeat`, shards of one size), or let all of them stop at
the same global step: `tf.train.StopAtStepHook(last_step=...)`. In TensorFlow 2, let the branch for workers
end in `server.join()`.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.member_names import name_members
from allaboard.analysis.parameter_servers import (
    TF2_CHIEF_CALL,
    has_parameter_servers,
    task_name,
    training_members,
    workers_wait_for_peers,
)
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Load, Numbered, Severity
from allaboard.facts.member import Declared, Exit, Member
from allaboard.facts.samples import ps_member, sample_job

MIN_ALONE_S = 15.0
"""Seconds that the others must train on before it is reported, ..."""
MIN_ALONE_SHARE = 0.5
"""... and the share of the time for which it trained itself."""
MIN_CHIEF_ALONE_S = 5.0
"""Seconds in which TensorFlow 2's chief must continue without a worker before that is reported."""
MIN_MORE_RUNS = 0.2
"""Share of its runs that another member must have completed in addition, and share of updates since its
exit."""


def check(view: JobView) -> Iterator[Claim]:
    if not has_parameter_servers(view) or workers_wait_for_peers(view):
        return
    still_training = [m for m in training_members(view) if m.alive and m.step > 0]
    if not still_training:
        return
    yield from _exited_tf2_workers(view)
    for worker in training_members(view):
        end = worker.exit
        if end is None or not _exited_well(worker) or worker.step == 0:
            continue
        alone_s = view.now - end.ended_at
        # Between its last step and its exit it may have done something other than training.
        moving = [
            m
            for m in still_training
            if m.step_at > end.ended_at + MIN_ALONE_S / 2 and _has_more(m, worker)
        ]
        if alone_s >= max(MIN_ALONE_S, MIN_ALONE_SHARE * worker.run.span) and moving:
            yield _claim(worker, moving, alone_s)


def _exited_well(member: Member) -> bool:
    """Return True if it exited by itself with code 0."""
    return (
        member.exit is not None
        and member.exit.code == 0
        and not member.exit.ours
        and member.raised is None
    )


def _exited_tf2_workers(view: JobView) -> Iterator[Claim]:
    """Report workers to which TensorFlow 2's chief scheduled functions, and which have exited."""
    chiefs = [m for m in view.alive if m.declared is not None and m.declared.call == TF2_CHIEF_CALL]
    alive_names = {m.who.name for m in view.alive}
    for worker in view.members:
        if (
            worker.who.job != "worker"
            or worker.step
            or not _exited_well(worker)
            or worker.who.name in alive_names
        ):
            continue
        end = worker.exit.ended_at if worker.exit is not None else view.now
        continuing = [
            m
            for m in chiefs
            if m.step_at > end + MIN_CHIEF_ALONE_S / 2 and view.now - end >= MIN_CHIEF_ALONE_S
        ]
        if continuing:
            yield Claim(
                summary=f"{task_name(worker)} exited with code 0 and no longer serves; "
                f"{name_members(continuing)} continues without it",
                who=(worker.who,),
                evidence=(
                    Evidence("exit code 0", "wait status"),
                    *(
                        Evidence(e.last_line, worker.log)
                        for e in (worker.exit,)
                        if e and e.last_line
                    ),
                ),
                fix="let its branch for worker end in server.join(), and find out why it exited",
                severity=Severity.WARNING,
                since=end,
            )


def _has_more(continuing: Member, finished: Member) -> bool:
    """Return True if ``other`` still trains (the variables change) and had more to do than ``one``."""
    if finished.numbered is None or continuing.numbered is None:
        return False  # whether it trains or evaluates is unknown
    trained = continuing.numbered.last_number - finished.numbered.last_number
    return (
        trained >= MIN_MORE_RUNS * finished.step
        and continuing.step >= (1 + MIN_MORE_RUNS) * finished.step
    )


def _claim(worker: Member, still_training: list[Member], alone_s: float) -> Claim:
    runs = ", ".join(f"{task_name(m)}: {m.step} runs" for m in (worker, *still_training[:3]))
    return Claim(
        summary=f"{task_name(worker)} finished after {worker.step} runs; {name_members(still_training)} "
        f"{'have' if len(still_training) > 1 else 'has'} been training without it for {alone_s:.0f} s",
        who=(worker.who,),
        evidence=(Evidence(runs, "black box"), Evidence("exit code 0", "wait status")),
        fix="give every worker the same amount of data (Dataset.repeat), or stop all at the same "
        "global step: tf.train.StopAtStepHook(last_step=...)",
        severity=Severity.INFO,
        certainty=Certainty.LIKELY,
        since=worker.exit.ended_at if worker.exit is not None else None,
    )


def _left(exited_at: float, span: float = 20.0, **how: object) -> Member:
    end = Exit(ended_at=exited_at, **({"code": 0} | how))  # type: ignore[arg-type]
    return ps_member("worker", 1, exit=end, run=Load(span=span), step=40, numbered=Numbered(1, 80))


def _other(step: int, number: int, step_at: float = 99.5) -> Member:
    return ps_member("worker", 0, step=step, step_at=step_at, numbered=Numbered(1, number))


_ON = _other(900, 940)
_PS = ps_member("ps", 0)


def _chief(at: float, **also: object) -> Member:
    declaration = Declared(
        framework="tensorflow", call=TF2_CHIEF_CALL, rank=0, world_size=1, job="chief", index=0
    )
    return ps_member("chief", 0, step=300, step_at=at, declared=declaration, **also)


_GONE = ps_member("worker", 1, exit=Exit(ended_at=80.0, code=0), step=0)
RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "a worker has finished after 40 runs, and another trains on after 900": (
            sample_job(_ON, _left(80.0), _PS),
            "worker 1 finished after 40 runs; worker 0 has been training without it for 20 s",
        ),
        "a worker of TensorFlow 2 has exited with code 0 and no longer serves": (
            sample_job(_chief(99.5), _GONE, ps_member("worker", 0), _PS),
            "worker 1 exited with code 0 and no longer serves; chief 0 continues without it",
        ),
    },
    silent_on={
        "TensorFlow 2's chief has scheduled nothing since a worker exited": sample_job(
            _chief(79.0), _GONE, _PS
        ),
        "a worker of TensorFlow 2 exited one second ago": sample_job(
            _chief(99.9), _left(99.0), _PS
        ),
        "TensorFlow 2's chief has exited too": sample_job(
            _chief(99.0, exit=Exit(ended_at=99.1, code=0)), _GONE, _PS
        ),
        "the worker of TensorFlow 2 that exited was started again": sample_job(
            _chief(99.5), _GONE, ps_member("worker", 1), _PS
        ),
        "a worker finished 5 seconds ago": sample_job(_ON, _left(95.0), _PS),
        "a worker finished after hours, and the others are about to finish too": sample_job(
            _ON, _left(80.0, span=9000.0), _PS
        ),
        "the other worker completed its last step just after the first had finished": sample_job(
            _other(70, 110, step_at=80.1), _left(80.0), _PS
        ),
        "the chief evaluates with the same session after the training": sample_job(
            _other(900, 82), _left(80.0), _PS
        ),
        "the other worker started later, and has as much to do": sample_job(
            _other(36, 116), _left(80.0), _PS
        ),
        "it is not known whether the other worker trains or evaluates": sample_job(
            ps_member("worker", 0, step=900, step_at=99.5), _left(80.0), _PS
        ),
        "the worker that has ended failed with exit code 1": sample_job(
            _ON, _left(80.0, code=1), _PS
        ),
        "a worker that is far slower, but still trains": sample_job(
            _ON, ps_member("worker", 1, step=3, step_at=99.0), _PS
        ),
    },
    drill=("ps-leaves-early",),
)
