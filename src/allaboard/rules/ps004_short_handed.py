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
from allaboard.analysis.parameter_servers.task_roles import (
    AWAIT_CHIEF_OP,
    COORDINATOR_JOIN_OP,
    describe_activity,
    has_parameter_servers,
    only_serves,
    task_name,
)
from allaboard.analysis.stalls.stall import MIN_STUCK_S, is_stuck_idle
from allaboard.contracts import Rule
from allaboard.facts import (
    Certainty,
    Claim,
    Evidence,
    Exit,
    JobView,
    Member,
    Op,
    Phase,
    Severity,
    Stage,
)
from allaboard.facts.samples import USER, ps_member, sample_job, sample_stack

PATIENCE = 10.0
"""Seconds that the others must train without it before it is reported (MIN_STUCK_S if it does not move),
..."""
RECOVERY = 45.0
"""... and this many (s) if it waits for the chief to initialize: TensorFlow checks that every 30 s."""


def check(view: JobView) -> Iterator[Claim]:
    if not has_parameter_servers(view):
        return
    train = [m for m in view.alive if _trains(m) and "synchronous" in m.notes]
    total = max((_total(m) for m in train), default=0)
    if not train or len(train) >= total:
        return
    absent = [m for m in view.members if _never_trained(m) or _left(m)]
    # No member may have made a step yet: one that waits in its first step has begun.
    since = max((at for m in (*train, *absent) if (at := _since(m)) is not None), default=view.now)
    patience = MIN_STUCK_S if all(is_stuck_idle(view, m) for m in absent) else PATIENCE
    patience = RECOVERY if any(map(_awaits_chief, absent)) else patience
    if any(m.alive and view.now - m.moved_at < min(patience, PATIENCE) for m in absent):
        return  # it has just done something new, for example since its wait for the chief is over
    if absent and view.now - since >= patience:
        yield _claim(view, train, absent, total, since)


def _trains(one: Member) -> bool:
    """Return True if it is in its training loop; one that closes its session waits for no other."""
    return one.phase is Phase.TRAINING and (one.op is None or one.op.name != COORDINATOR_JOIN_OP)


def _total(one: Member) -> int:
    """Return the total number of workers: the 3 of "2 of 3", where 2 gradients make an update."""
    last = one.notes["synchronous"].rpartition(" ")[2]
    return int(last) if last.isdigit() else 0


def _never_trained(one: Member) -> bool:
    return not only_serves(one) and one.who.job != "evaluator" and one.step == 0


def _since(one: Member) -> float | None:
    """Return since when it trains or does not train: the first step, the exit of the previous process of a
    restarted task, or its own exit. None if the task has never run."""
    if one.exit is not None:
        return one.exit.at
    return one.phase_since if one.step else one.after


def _awaits_chief(one: Member) -> bool:
    return one.alive and one.op is not None and one.op.name == AWAIT_CHIEF_OP


def _left(one: Member) -> bool:
    end = one.exit
    return end is not None and not end.ours and not only_serves(one)


def _claim(
    view: JobView, train: list[Member], absent: list[Member], total: int, since: float
) -> Claim:
    first = absent[0]
    return Claim(
        summary=f"only {len(train)} of {total} workers {'train' if len(train) > 1 else 'trains'} in the "
            "synchronous job; "
        f"{task_name(first)} does not: {describe_activity(first)}",
        who=tuple(m.who for m in absent),
        evidence=(
            Evidence(f"{train[0].notes['synchronous']} gradients make an update",
                     "SyncReplicasOptimizer"),
            Evidence(f"for {view.now - since:.0f} s", "black box"),
            Evidence(", ".join(f"{task_name(m)}: {m.step} runs" for m in (*train, *absent)), "black box"),
        ),
        fix=command_on_host(view, first, f"py-spy dump --pid {first.who.pid}")
        if first.alive
        else f"read {first.log}; restart {task_name(first)}",
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
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    fires_on={
        "one has not started": (
            sample_job(
                ps_member("worker", 0, **_SYNC),
                ps_member("worker", 1, **_COMING),
                ps_member("ps", 0),
            ),
            "only 1 of 2 workers trains in the synchronous job; worker 1 does not: it is alive, in its "
            "own code",
        ),
        "one does not move since the others began": (
            sample_job(
                ps_member("worker", 0, phase_since=95.0, **_SYNC),
                ps_member("worker", 1, stack=sample_stack(USER), moved_at=95.0, **_COMING),
                ps_member("ps", 0),
            ),
            "only 1 of 2 workers trains in the synchronous job; worker 1 does not: it is at train.py:41 "
            "in train",
        ),
        "one failed, and has not come back": (
            sample_job(
                ps_member("worker", 0, **_SYNC),
                ps_member("worker", 1, after=85.0, **_COMING),
                ps_member("ps", 0),
            ),
            "only 1 of 2 workers trains in the synchronous job; worker 1 does not: it is alive, in its "
            "own code",
        ),
        "it waits for the chief for longer than the interval of its checks": (
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
        "it sleeps until its next check whether the chief has initialized": sample_job(
            ps_member("worker", 0, **_SYNC),
            ps_member("worker", 1, **_AWAITS),
            ps_member("ps", 0),
            now=88.0,
        ),
        "its wait for the chief is over, and it has yet to make a step": sample_job(
            ps_member("worker", 0, **_SYNC),
            ps_member("worker", 1, moved_at=97.0, **_COMING),
            ps_member("ps", 0),
        ),
        "all train": sample_job(
            ps_member("worker", 0, **_SYNC), ps_member("worker", 1, **_SYNC), ps_member("ps", 0)
        ),
        "asynchronous": sample_job(
            ps_member("worker", 0), ps_member("worker", 1, **_COMING), ps_member("ps", 0)
        ),
        "no member has made a step": sample_job(
            ps_member("worker", 0, step=0, **_SYNC),
            ps_member("worker", 1, **_COMING),
            ps_member("ps", 0),
        ),
        "it starts a little later": sample_job(
            ps_member("worker", 0, phase_since=95.0, **_SYNC),
            ps_member("worker", 1, **_COMING),
            ps_member("ps", 0),
        ),
        "it reads something, since they began": sample_job(
            ps_member("worker", 0, phase_since=95.0, **_SYNC),
            ps_member("worker", 1, stack=sample_stack(USER), io=3e6, moved_at=95.0, **_COMING),
            ps_member("ps", 0),
        ),
        "it failed a moment ago, and is coming back": sample_job(
            ps_member("worker", 0, **_SYNC),
            ps_member("worker", 1, after=94.0, **_COMING),
            ps_member("ps", 0),
        ),
        "one has ended, and the other one closes its session": sample_job(
            ps_member("worker", 0, op=Op(COORDINATOR_JOIN_OP, 2, 80.0), **_SYNC),
            ps_member("worker", 1, exit=Exit(at=80.0, code=0), **_SYNC),
            ps_member("ps", 0),
        ),
        "done": sample_job(
            ps_member("worker", 0, exit=Exit(at=80.0, code=0), **_SYNC), ps_member("ps", 0)
        ),
    },
    since="0.1",
    passes=True,
    drill=("ps-sync-absent",),
)
