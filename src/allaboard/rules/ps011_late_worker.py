"""A synchronous job waits for one worker in every step.

## Why it matters
SyncReplicasOptimizer makes an update when it has the gradients of all workers (or of
`replicas_to_aggregate`). A worker that is late in every step, because of slow data, fewer cores or other work
on its host, sets the pace of all: the others wait in `Session.run` for its gradient.

The other workers wait for the named one, for the share of each step that the finding gives, until the cause
of its delay is gone, or `replicas_to_aggregate` is smaller. In an asynchronous job, a worker never waits in
`sess.run` because of another worker, and there is no such finding.

## What to do
Look at where the named worker spends its time (`py-spy record --duration 20 --pid PID -o late.svg`).

- In its own code: usually its input (files on a slow disk, one thread for decoding).
- Computing: it has fewer cores than the others, or another program runs beside it.
- Waiting for servers: its link (PS007).
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

import msgspec

from allaboard.analysis.member_names import command_on_host, name_members
from allaboard.analysis.parameter_servers import (
    TimeBreakdown,
    break_down_time,
    has_parameter_servers,
    task_name,
    training_members,
)
from allaboard.analysis.performance.recent_window import MIN_RECENT_SPAN_S as SOON
from allaboard.analysis.performance.recent_window import recent_view
from allaboard.contracts import Relations, Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Load, Member, Pace, Phase, Severity
from allaboard.facts.samples import ps_member, sample_job

MIN_SPAN_S = 8.0
"""Seconds that must have been measured."""
MIN_WAIT_SHARE = 0.5
"""Median share of their time that the other workers must wait for workers, ..."""
MIN_RECENT_WAIT_SHARE = 0.75
"""... and the same over only a few seconds (SOON), ..."""
MAX_OWN_WAIT_SHARE = 0.15
"""... and the share that the late worker may wait for them at most."""
MAX_STEP_MEDIANS, MIN_LONG_STEP_S = 8, 2.0
"""Median steps, and seconds, that a step may last; a longer one means that the worker has left its steps."""


def check(view: JobView) -> Iterator[Claim]:
    # Without further steps, no worker is late.
    if has_parameter_servers(view) and not view.stalled:
        yield from list(_late_workers(view, MIN_SPAN_S, MIN_WAIT_SHARE)) or _late_workers(
            recent_view(view), SOON, MIN_RECENT_WAIT_SHARE
        )


def _late_workers(view: JobView, span: float, wait: float) -> Iterator[Claim]:
    """Report workers for which the others wait for this share of the time."""
    measured = [
        (m, s)
        for m in training_members(view)
        if _may_still_step(m)
        and "synchronous" in m.notes
        and (s := break_down_time(view, m)) is not None
    ]
    measured = [(m, s) for m, s in measured if s.span >= span and m.step > 0 and not m.is_stopped]
    if any(_has_left_its_steps(view, m) for m, _ in measured):
        return
    late = [
        (m, s)
        for m, s in measured
        if s.waiting_for_workers <= MAX_OWN_WAIT_SHARE
        and s.own_code + s.computing + s.waiting_for_servers > MIN_WAIT_SHARE
    ]
    waiting = [(m, s) for m, s in measured if (m, s) not in late]
    if (
        not late
        or len(late) > len(waiting)
        or median(s.waiting_for_workers for _, s in waiting) < wait
    ):
        return
    for member, shares in late:
        yield _claim(view, member, shares, waiting)


def _has_left_its_steps(view: JobView, member: Member) -> bool:
    """Return True if it has left its steps for once: for an evaluation, a checkpoint, or forever."""
    return member.pace.step > 0.0 and view.now - member.step_at > max(
        MIN_LONG_STEP_S, MAX_STEP_MEDIANS * member.pace.step
    )


def _may_still_step(member: Member) -> bool:
    """Return True if it may still make a step; what was measured of one that shuts down was its training."""
    return member.alive and member.phase is not Phase.LEAVING


def _claim(
    view: JobView,
    member: Member,
    shares: TimeBreakdown,
    waiting: list[tuple[Member, TimeBreakdown]],
) -> Claim:
    spends = max(
        (shares.own_code, "in its own code"),
        (shares.computing, "computing"),
        (shares.waiting_for_servers, "waiting for servers"),
    )
    waits = "; ".join(
        f"{task_name(m)} waits {s.waiting_for_workers:.0%} of the time" for m, s in waiting[:4]
    )
    return Claim(
        summary=f"{name_members([m for m, _ in waiting])} {'wait' if len(waiting) > 1 else 'waits'} for "
        f"{task_name(member)} in every step; {task_name(member)} spends {spends[0]:.0%} of its time "
        f"{spends[1]}",
        who=(member.who,),
        evidence=(
            Evidence(
                f"{task_name(member)}: {shares.own_code:.0%} own code, {shares.computing:.0%} computing, "
                f"{shares.waiting_for_servers:.0%} waiting for servers, {shares.waiting_for_workers:.0%} "
                "for workers",
                "black box, /proc",
            ),
            Evidence(waits, "black box, /proc"),
            Evidence(
                f"{member.notes['synchronous']} gradients make an update", "SyncReplicasOptimizer"
            ),
        ),
        fix=command_on_host(
            view, member, f"py-spy record --duration 20 --pid {member.who.pid} -o late.svg"
        ),
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
    )


def _worker(
    index: int, waiting: float, cpu: float = 0.05, sync: bool = True, recent: float = 0.5
) -> Member:
    """``recent``: the share of the last seconds in which it was inside."""
    notes = {"synchronous": "2 of 2"} if sync else {}
    load = Load(span=10.0, operation_share=waiting, cpu=cpu, allowed=8)
    lately = msgspec.structs.replace(load, span=3.9, operation_share=recent)
    number = index if index < 2 else index + 2
    return ps_member("worker", index, load=load, recent_load=lately, notes=notes, number=number)


_IDLE = Load(span=10.0, cpu=0.05, allowed=8)
_PS = ps_member("ps", 0, load=_IDLE, recent_load=_IDLE)
RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "one of two workers is late because of slow data": (
            sample_job(_worker(0, 0.95), _worker(1, 0.06), _PS),
            "worker 0 waits for worker 1 in every step; worker 1 spends 94% of its time in its own code",
        ),
        "one of two workers has been late for four seconds because of slow data": (
            sample_job(_worker(0, 0.5, recent=0.95), _worker(1, 0.4, recent=0.06), _PS),
            "worker 0 waits for worker 1 in every step; worker 1 spends 94% of its time in its own code",
        ),
        "one of three workers is late because it computes longer than the others": (
            sample_job(_worker(0, 0.95), _worker(1, 0.99, cpu=0.98), _worker(2, 0.95), _PS),
            "worker 0, worker 2 wait for worker 1 in every step; worker 1 spends 98% of its time computing",
        ),
    },
    silent_on={
        "one of two workers is late in an asynchronous job": sample_job(
            _worker(0, 0.95, sync=False), _worker(1, 0.06, sync=False), _PS
        ),
        "one of two workers has waited 70 % of four seconds for the other": sample_job(
            _worker(0, 0.5, recent=0.7), _worker(1, 0.4, recent=0.06), _PS
        ),
        "both workers wait about half of the time for each other": sample_job(
            _worker(0, 0.5), _worker(1, 0.45), _PS
        ),
        "the late worker has left its loop and shuts down": sample_job(
            _worker(0, 0.95), msgspec.structs.replace(_worker(1, 0.06), phase=Phase.LEAVING), _PS
        ),
        "the late worker has left its steps once, for longer than usual": sample_job(
            _worker(0, 0.95),
            msgspec.structs.replace(_worker(1, 0.06), pace=Pace(steps=30, step=0.2)),
            _PS,
        ),
        "the job makes no further steps": sample_job(
            _worker(0, 0.95), _worker(1, 0.06), _PS, progress_at=90.0
        ),
        "both workers are slow to read their data": sample_job(
            _worker(0, 0.1), _worker(1, 0.1), _PS
        ),
        "both workers wait for a server that uses all of its core": sample_job(
            _worker(0, 0.95),
            _worker(1, 0.95),
            ps_member("ps", 0, load=Load(span=10.0, cpu=0.97, allowed=1)),
        ),
    },
    passes=True,
    drill=("ps-sync-slow",),
    relations=Relations(measured=True),
)
