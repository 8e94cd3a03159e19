"""One worker is slow (a straggler), and all others wait for it in most steps.

In a synchronous job every step lasts as long as that of the slowest worker. The worker that waits least in
collectives is the one for which the others wait. The finding names where it loses the time, if one part of
its step explains four fifths of it: loading data, or its own code between data and collectives. Medians of
steps are compared, so a first step that compiles, and an occasional checkpoint or evaluation, do not count.
If the others wait for half of every step, it is reported after about four seconds (and sixteen steps); if
they wait for a quarter or more, after ten. The finding refers to the seconds that it names. If ranks took
turns in being slow within the last 20 s, none is named.

TensorFlow and JAX compute in threads of their own, and the CPU time of all threads counts as work, including
threads that prepare data. There a rank is named only if most of its delay is outside of the framework's
calls, or is waiting for data.

## Why it matters
The job runs at the pace of one worker; the others' devices are idle for the share that the finding gives.

## What to do
- If it loses the time in data: look at its disk or mount, its shard (larger files, more decoding),
  `num_workers`.
- If it loses the time in its own code: look at what only this rank does in every step (logging, metrics, a
  debug option), a busy or throttled core, a slower device. `py-spy record -d 10 -o slow.svg --pid PID` shows
  it.

If something is measured of this rank or its host and hardly of the others (waiting for a core, throttling,
steal, swap, stalls on memory or disks, a GPU that is slowed down), the evidence says so: it is the probable
cause, and what to do begins with it.

Waiting on a GPU is not measured here, because collectives return at once there: SLOW010 names a rank that is
late with those.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.member_names import command_on_host, conjugate_verb, name_members
from allaboard.analysis.performance.stragglers import (
    SHADOWS_NOTE,
    Lag,
    StepPart,
    find_lag,
    format_step_time,
)
from allaboard.analysis.resources.resource_differences import Difference, find_differences
from allaboard.contracts import Relations, Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Load, Member, Pace, Severity
from allaboard.facts.samples import sample_job, sample_member, stalled_job


def check(view: JobView) -> Iterator[Claim]:
    lag = find_lag(view)
    if lag is not None:
        yield _claim(view, lag)


def _claim(view: JobView, lag: Lag) -> Claim:
    in_part = f" in {lag.part}" if lag.part is not None else ""
    they, them = ("they", "them") if len(lag.slow) > 1 else ("it", "it")
    window = f"{lag.slow[0].pace.covered_seconds:.0f} s"
    differences = tuple(find_differences(view, lag.slow, lag.waiting))
    durations = (
        f"{format_step_time(lag.slow_took)} a step{in_part}, the others "
        f"{format_step_time(lag.others_took)}"
    )
    return Claim(
        summary=f"{name_members(lag.slow)} {conjugate_verb('slow', lag.slow)} down most steps of the last "
        f"{window}: the others wait {format_step_time(lag.seconds)} of each {format_step_time(lag.step)} "
        f"step for {them}; {they} {conjugate_verb('take', lag.slow)} {durations}",
        who=tuple(m.who for m in lag.slow),
        evidence=(
            Evidence(
                "in collectives a step: "
                + ", ".join(
                    f"rank {m.who.rank} {format_step_time(m.pace.sync)}"
                    for m in (*lag.slow[:4], *lag.waiting[:4])
                ),
                f"black box, medians of {lag.slow[0].pace.steps} steps over {window}",
            ),
            Evidence(
                f"apart from waiting for others, {they} {conjugate_verb('take', lag.slow)} "
                f"{lag.factor:.1f} times as long as the others",
                "black box",
            ),
            Evidence(
                ", ".join(
                    f"rank {m.who.rank} uses {m.load.cpu:.1f} cores"
                    for m in (*lag.slow[:2], *lag.waiting[:2])
                ),
                "/proc",
            ),
            *(difference.evidence for difference in differences),
        ),
        fix=_fix(view, lag, differences),
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
    )


def _fix(view: JobView, lag: Lag, differences: tuple[Difference, ...]) -> str:
    slow = lag.slow[0]
    if differences:
        return f"look at what only it has: {command_on_host(view, slow, differences[0].look)}"
    if lag.part is StepPart.INPUT:
        return "check what slows down its data: its disk or mount, its shard, num_workers of its DataLoader"
    record = f"py-spy record -d 10 -o slow.svg --pid {slow.who.pid}"
    return f"see what it does in a step: {command_on_host(view, slow, record)}"


def _stepping(
    rank: int,
    sync: float,
    data: float = 0.001,
    step: float = 0.1,
    span: float = 15.0,
    note: str = "",
) -> Member:
    pace = Pace(steps=63, step=step, input=data, sync=sync, span=span)
    recent = msgspec.structs.replace(pace, span=min(span, 3.1))
    load = Load(span=10.0, cpu=1.0, allowed=8)
    return sample_member(
        rank, pace=pace, recent_pace=recent, load=load, notes={note: "1"} if note else {}
    )


def _changed(rank: int, sync: float) -> Member:
    """Return a member as if, until four seconds ago, all had waited for each other equally."""
    member = _stepping(rank, sync)
    return msgspec.structs.replace(member, pace=_stepping(rank, 0.04).pace)


def _in_turn(rank: int, sync: float, earlier_sync: float | None = None) -> Member:
    """Return a member for which the others waited in some of the last 20 s, and which waited for them in
    others; ``before``: its usual wait until then."""
    member = _stepping(rank, sync)
    pace = msgspec.structs.replace(
        member.pace, sync=sync if earlier_sync is None else earlier_sync, low=0.03, high=0.09
    )
    recent = msgspec.structs.replace(member.recent_pace, low=0.03, high=0.09)
    return msgspec.structs.replace(member, pace=pace, recent_pace=recent)


def _pooled(rank: int, sync: float, share_inside: float, data: float = 0.001) -> Member:
    """Return a member that was inside TensorFlow's functions for this share of its time."""
    load = Load(span=10.0, cpu=2.0, allowed=8, operation_share=share_inside)
    member = _stepping(rank, sync, data=data)
    return msgspec.structs.replace(member, framework="tensorflow", load=load)


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "one of three workers is slow in its own code": (
            sample_job(_stepping(0, 0.07), _stepping(1, 0.01), _stepping(2, 0.07)),
            "worker 1 slows down most steps of the last 15 s: the others wait 60 ms of each 100 ms step "
            "for it; it takes 89 ms a step in its own code outside data loading and collectives, the "
            "others 29 ms",
        ),
        "one of three workers has been slow for four seconds": (
            sample_job(_changed(0, 0.07), _changed(1, 0.01), _changed(2, 0.07)),
            "worker 1 slows down most steps of the last 6 s: the others wait 60 ms of each 100 ms step "
            "for it; it takes 89 ms a step in its own code outside data loading and collectives, the "
            "others 29 ms",
        ),
        "one of three workers is slow in loading data": (
            sample_job(_stepping(0, 0.07), _stepping(1, 0.01, data=0.061), _stepping(2, 0.07)),
            "worker 1 slows down most steps of the last 15 s: the others wait 60 ms of each 100 ms step "
            "for it; it takes 61 ms a step in loading data, the others 1 ms",
        ),
        "one TensorFlow worker is busy outside the function in which the others wait": (
            sample_job(_pooled(0, 0.07, 0.9), _pooled(1, 0.01, 0.3), _pooled(2, 0.07, 0.9)),
            "worker 1 slows down most steps of the last 15 s: the others wait 60 ms of each 100 ms step "
            "for it; it takes 89 ms a step in its own code outside data loading and collectives, the "
            "others 29 ms",
        ),
        "one TensorFlow worker waits for data": (
            sample_job(*(_pooled(r, 0.07, 0.3) for r in (0, 2)), _pooled(1, 0.01, 0.3, data=0.061)),
            "worker 1 slows down most steps of the last 15 s: the others wait 60 ms of each 100 ms step "
            "for it; it takes 61 ms a step in loading data, the others 1 ms",
        ),
        "one of three workers is slow in several parts of its step": (
            sample_job(_stepping(0, 0.07), _stepping(1, 0.01, data=0.031), _stepping(2, 0.07)),
            "worker 1 slows down most steps of the last 15 s: the others wait 60 ms of each 100 ms step "
            "for it; it takes 90 ms a step, the others 30 ms",
        ),
    },
    silent_on={
        "all workers take about the same time": sample_job(
            _stepping(0, 0.07), _stepping(1, 0.06), _stepping(2, 0.07)
        ),
        "two of three workers are slow": sample_job(
            _stepping(0, 0.01), _stepping(1, 0.01), _stepping(2, 0.07)
        ),
        "one worker is slow, but was observed for only two seconds": sample_job(
            _stepping(0, 0.07), _stepping(1, 0.01, span=2.0), _stepping(2, 0.07)
        ),
        "for four seconds, the others have waited for a third of each step": sample_job(
            _changed(0, 0.07), _changed(1, 0.035), _changed(2, 0.07)
        ),
        "the others have run out of data and shadow the slow worker's steps (`Join`)": sample_job(
            _stepping(0, 0.07, note=SHADOWS_NOTE),
            _stepping(1, 0.01),
            _stepping(2, 0.07, note=SHADOWS_NOTE),
        ),
        "the workers take turns in being slow": sample_job(
            _in_turn(0, 0.07), _in_turn(1, 0.01), _in_turn(2, 0.07)
        ),
        "the workers took turns, and one has been slow for the last four seconds": sample_job(
            _in_turn(0, 0.07, earlier_sync=0.05), _in_turn(1, 0.01, earlier_sync=0.05)
        ),
        "one TensorFlow worker's data threads are busy while it waits like the others": sample_job(
            _pooled(0, 0.07, 0.9), _pooled(1, 0.01, 0.9), _pooled(2, 0.07, 0.9)
        ),
        "two workers that each step at their own pace": sample_job(
            _stepping(0, 0.0, step=0.2), _stepping(1, 0.07)
        ),
        "steps of 5 ms": sample_job(
            _stepping(0, 0.003, step=0.005), _stepping(1, 0.001, step=0.005), launched=2
        ),
        "the job has stalled": stalled_job(
            _stepping(0, 0.07), _stepping(1, 0.01), _stepping(2, 0.07)
        ),
    },
    passes=True,
    drill=("slow-code", "slow-data"),
    relations=Relations(measured=True),
)
