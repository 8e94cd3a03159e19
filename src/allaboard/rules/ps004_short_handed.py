"""A synchronous job trains with fewer workers than its optimizer expects.

## Why it matters
SyncReplicasOptimizer averages a fixed number of gradients for each update. If a worker is missing, the others
deliver its share, one gradient after the other: the job continues at a fraction of its speed, without a
message. If more workers are missing than the others may replace, the job stalls.

Every worker waits inside `Session.run` for a token that the chief puts into a queue when enough gradients
have arrived; so the workers wait for each other, in every step, for as long as one is missing. In an
asynchronous job, a worker never waits in `sess.run` because of another worker.

## What to do
Restart the missing worker, or start the job with the number of workers that you have. With
`replicas_to_aggregate` smaller than `total_num_replicas`, updates continue without the slowest workers.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.member_names import command_on_host
from allaboard.analysis.parameter_servers import (
    AWAIT_CHIEF_OP,
    COORDINATOR_JOIN_OP,
    describe_activity,
    has_parameter_servers,
    only_serves,
    task_name,
)
from allaboard.analysis.stalls.stall import MIN_STUCK_S, is_stuck_idle
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Exit, JobView, Member, Op, Phase, Severity
from allaboard.facts.samples import USER, ps_member, sample_job, sample_stack

MIN_ABSENCE_S = 10.0
"""Seconds that the others must train without it before it is reported (MIN_STUCK_S if it does not move),
..."""
MIN_CHIEF_WAIT_S = 45.0
"""... and this many (s) if it waits for the chief to initialize: TensorFlow checks that every 30 s."""


def check(view: JobView) -> Iterator[Claim]:
    if not has_parameter_servers(view):
        return
    training = [m for m in view.alive if _is_training(m) and "synchronous" in m.notes]
    total = max((_total_workers(m) for m in training), default=0)
    if not training or len(training) >= total:
        return
    absent = [m for m in view.members if _never_trained(m) or _has_exited(m)]
    # No member may have made a step yet: one that waits in its first step has begun.
    since = max(
        (began_at for m in (*training, *absent) if (began_at := _state_since(m)) is not None),
        default=view.now,
    )
    min_absence = MIN_STUCK_S if all(is_stuck_idle(view, m) for m in absent) else MIN_ABSENCE_S
    min_absence = MIN_CHIEF_WAIT_S if any(map(_awaits_chief, absent)) else min_absence
    if any(m.alive and view.now - m.moved_at < min(min_absence, MIN_ABSENCE_S) for m in absent):
        return  # it has just done something new, for example since its wait for the chief is over
    if absent and view.now - since >= min_absence:
        yield _claim(view, training, absent, total, since)


def _is_training(member: Member) -> bool:
    """Return True if it is in its training loop; one that closes its session waits for no other."""
    return member.phase is Phase.TRAINING and (
        member.op is None or member.op.name != COORDINATOR_JOIN_OP
    )


def _total_workers(member: Member) -> int:
    """Return the total number of workers: the 3 of "2 of 3", where 2 gradients make an update."""
    last_word = member.notes["synchronous"].rpartition(" ")[2]
    return int(last_word) if last_word.isdecimal() else 0


def _never_trained(member: Member) -> bool:
    return not only_serves(member) and member.who.job != "evaluator" and member.step == 0


def _state_since(member: Member) -> float | None:
    """Return since when it trains or does not train: the first step, the exit of the previous process of a
    restarted task, or its own exit. None if the task has never run."""
    if member.exit is not None:
        return member.exit.ended_at
    return member.phase_since if member.step else member.predecessor_ended_at


def _awaits_chief(member: Member) -> bool:
    return member.alive and member.op is not None and member.op.name == AWAIT_CHIEF_OP


def _has_exited(member: Member) -> bool:
    end = member.exit
    return end is not None and not end.ours and not only_serves(member)


def _claim(
    view: JobView, training: list[Member], absent: list[Member], total: int, since: float
) -> Claim:
    first_absent = absent[0]
    return Claim(
        summary=f"only {len(training)} of {total} workers {'train' if len(training) > 1 else 'trains'} in "
            f"the synchronous job; {task_name(first_absent)} does not: {describe_activity(first_absent)}",
        who=tuple(m.who for m in absent),
        evidence=(
            Evidence(f"{training[0].notes['synchronous']} gradients make an update",
                     "SyncReplicasOptimizer"),
            Evidence(f"for {view.now - since:.0f} s", "black box"),
            Evidence(", ".join(f"{task_name(m)}: {m.step} runs" for m in (*training, *absent)), "black box"),
        ),
        fix=command_on_host(view, first_absent, f"py-spy dump --pid {first_absent.who.pid}")
        if first_absent.alive
        else f"read {first_absent.log}; restart {task_name(first_absent)}",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        since=since,
    )  # fmt: skip


_SYNC = {"notes": {"synchronous": "2 of 2"}}
_COMING = {
    "phase": Phase.IMPORTED, "phase_since": 45.0, "step": 0, "ops": 0, "os_state_since": 99.9,
}  # fmt: skip
_AWAITS = {"phase": Phase.JOINED, "step": 0, "ops": 0, "op": Op(AWAIT_CHIEF_OP, 1, 45.0)} | _SYNC
RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "one of two workers has not begun to train": (
            sample_job(
                ps_member("worker", 0, **_SYNC),
                ps_member("worker", 1, **_COMING),
                ps_member("ps", 0),
            ),
            "only 1 of 2 workers trains in the synchronous job; worker 1 does not: it is alive, in its "
            "own code",
        ),
        "one of two workers has stood still since the other began 5 seconds ago": (
            sample_job(
                ps_member("worker", 0, phase_since=95.0, **_SYNC),
                ps_member("worker", 1, stack=sample_stack(USER), moved_at=95.0, **_COMING),
                ps_member("ps", 0),
            ),
            "only 1 of 2 workers trains in the synchronous job; worker 1 does not: it is at train.py:41 "
            "in train",
        ),
        "one of two workers failed 15 seconds ago, and does not train yet": (
            sample_job(
                ps_member("worker", 0, **_SYNC),
                ps_member("worker", 1, predecessor_ended_at=85.0, **_COMING),
                ps_member("ps", 0),
            ),
            "only 1 of 2 workers trains in the synchronous job; worker 1 does not: it is alive, in its "
            "own code",
        ),
        "a worker has waited for the chief for 75 seconds, although it checks every 30": (
            sample_job(
                ps_member("worker", 0, **_SYNC),
                ps_member("worker", 1, **_AWAITS),
                ps_member("ps", 0),
                now=120.0,
            ),
            "only 1 of 2 workers trains in the synchronous job; worker 1 does not: it is alive, in its "
            "own code",
        ),
    },
    silent_on={
        "a worker sleeps until its next check whether the chief has initialized": sample_job(
            ps_member("worker", 0, **_SYNC),
            ps_member("worker", 1, **_AWAITS),
            ps_member("ps", 0),
            now=88.0,
        ),
        "a worker's wait for the chief is over, and it has yet to make a step": sample_job(
            ps_member("worker", 0, **_SYNC),
            ps_member("worker", 1, moved_at=97.0, **_COMING),
            ps_member("ps", 0),
        ),
        "all workers train": sample_job(
            ps_member("worker", 0, **_SYNC), ps_member("worker", 1, **_SYNC), ps_member("ps", 0)
        ),
        "one of two workers has not begun to train in an asynchronous job": sample_job(
            ps_member("worker", 0), ps_member("worker", 1, **_COMING), ps_member("ps", 0)
        ),
        "no worker has made a step": sample_job(
            ps_member("worker", 0, step=0, **_SYNC),
            ps_member("worker", 1, **_COMING),
            ps_member("ps", 0),
        ),
        "one worker has trained for 5 seconds, and the other is starting": sample_job(
            ps_member("worker", 0, phase_since=95.0, **_SYNC),
            ps_member("worker", 1, **_COMING),
            ps_member("ps", 0),
        ),
        "one worker has trained for 5 seconds, and the other still reads files": sample_job(
            ps_member("worker", 0, phase_since=95.0, **_SYNC),
            ps_member("worker", 1, stack=sample_stack(USER), io=3e6, moved_at=95.0, **_COMING),
            ps_member("ps", 0),
        ),
        "one of two workers failed 6 seconds ago, and is coming back": sample_job(
            ps_member("worker", 0, **_SYNC),
            ps_member("worker", 1, predecessor_ended_at=94.0, **_COMING),
            ps_member("ps", 0),
        ),
        "one worker has ended, and the other closes its session": sample_job(
            ps_member("worker", 0, op=Op(COORDINATOR_JOIN_OP, 2, 80.0), **_SYNC),
            ps_member("worker", 1, exit=Exit(ended_at=80.0, code=0), **_SYNC),
            ps_member("ps", 0),
        ),
        "the only worker has finished with exit code 0": sample_job(
            ps_member("worker", 0, exit=Exit(ended_at=80.0, code=0), **_SYNC), ps_member("ps", 0)
        ),
    },
    passes=True,
    drill=("ps-sync-absent",),
)
