"""Two workers claim the same rank.

## Why it matters
PyTorch's error then names the rank that is absent, not the one that exists twice. In TensorFlow the second
task cannot bind its port, while the first one hangs. No other report about the job can be trusted until every
worker has a rank of its own.

## What to do
Look at where the rank is computed: a copied environment, two launchers with the same `--node-rank`, or a
`rank=` in code that ignores the process's own number. With `--coordinator`, two jobs may share one address
and have nothing that distinguishes them (a launcher's job id, ALLABOARD_JOB_ID).
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.roll_call.roll_call import RollCall, find_roll_calls
from allaboard.analysis.roll_call.task_names import describe_tasks
from allaboard.contracts import Relations, Rule
from allaboard.facts import Address, Claim, Evidence, JobView, Member, Who
from allaboard.facts.samples import (
    arrived_member,
    ended_member,
    gathering_job,
    led_job,
    sample_declaration,
)


def check(view: JobView) -> Iterator[Claim]:
    for roll in find_roll_calls(view):
        for twins in roll.duplicates:
            alive = tuple(m for m in twins if m.alive)
            if len(alive) > 1:
                yield _claim(roll, alive, view.joined, view.place)


def _claim(roll: RollCall, twins: tuple[Member, ...], joined: bool, coordinator: str) -> Claim:
    declaration, rank = twins[0].declared, twins[0].who.rank
    tasks = declaration is not None and bool(declaration.cluster)
    which = twins[0].who.name if tasks else f"rank {rank}"
    # If more ranks are missing than were claimed twice, some of them may still join.
    complete = 0 < len(roll.missing) <= sum(len(t) - 1 for t in roll.duplicates)
    absent = f"; no process is {describe_tasks(declaration, roll.missing)}" if complete else ""
    hosts = list(dict.fromkeys(m.who.host for m in twins))
    on = f", on {' and '.join(hosts)}" if joined else ""
    each = [f"pid {m.who.pid}" + (f" on {m.who.host}" if joined else "") for m in twins]
    unclaimed = f"rank {roll.missing[0]}" if complete else "the rank it should have"
    if tasks:
        unclaimed = f"the {'unclaimed task' if complete else 'task it should be'} in its TF_CONFIG"
    if_started_twice = (
        f"if the job was started twice on {hosts[0]}, stop one; otherwise "
        if len(hosts) == 1
        else ""
    )
    if coordinator and _meet_at_different_addresses(twins):
        if_started_twice = (
            "if these are two jobs, give each its own ALLABOARD_JOB_ID or --coordinator; otherwise "
        )
    return Claim(
        summary=f"{len(twins)} processes claim to be {which}{on}{absent}",
        who=tuple(m.who for m in twins),
        evidence=(
            *(
                Evidence(f"{name}: rank {rank} of {m.declared.world_size}", m.declared.origin)
                for name, m in zip(each, twins, strict=True)
                if m.declared is not None
            ),
            *((Evidence(f"rendezvous at {coordinator}", "--coordinator"),) if coordinator else ()),
        ),
        fix=(if_started_twice if joined else "")
        + (_advise_listed_task(twins) or f"give {' or '.join(each)} {unclaimed}"),
        since=max(m.phase_since for m in twins),
    )


def _advise_listed_task(twins: tuple[Member, ...]) -> str:
    """Return advice for the one whose host the cluster lists under another task, or ""."""
    for member in twins:
        declaration = member.declared
        cluster = declaration.cluster if declaration is not None else {}
        here = [t for t, a in cluster.items() if Address.from_endpoint(a).host == member.who.host]
        if (
            declaration is not None
            and len(here) == 1
            and here[0] != f"{declaration.job}:{declaration.index}"
        ):
            task, address = here[0].replace(":", " "), cluster[here[0]]
            return f"on {member.who.host}: set the task to {task}, which the cluster lists there ({address})"
    return ""


def _meet_at_different_addresses(twins: tuple[Member, ...]) -> bool:
    """Return True if they have different rendezvous addresses, as processes of different jobs do."""
    declarations = [m.declared for m in twins if m.declared is not None]
    return any(
        (t.place, t.cluster) != (declarations[0].place, declarations[0].cluster)
        for t in declarations
    )


_OTHER_JOB = arrived_member(1, declared=sample_declaration(1, place="tcp://c:29500"))
_CLUSTER = {"chief:0": "a:1", "worker:0": "b:1", "worker:1": "c:1"}
_TASKS = tuple(
    arrived_member(
        rank,
        who=Who(job=job, index=0, rank=rank, host=host, pid=101),
        declared=sample_declaration(rank, job=job, index=0, cluster=_CLUSTER),
    )
    for rank, job, host in ((0, "chief", "a"), (1, "worker", "b"), (1, "worker", "c"))
)
RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "two processes are rank 1, and none is rank 2": (
            gathering_job(
                arrived_member(0),
                arrived_member(1),
                arrived_member(2, declared=sample_declaration(1), who=arrived_member(1).who),
            ),
            "2 processes claim to be rank 1; no process is rank 2",
        ),
        "two processes are rank 1, and other ranks have yet to join": (
            gathering_job(
                arrived_member(0, 4),
                arrived_member(1, 4),
                arrived_member(2, 4, declared=sample_declaration(1, 4), who=arrived_member(1).who),
            ),
            "2 processes claim to be rank 1",
        ),
        "rank 1 was started twice on one host": (
            led_job(arrived_member(0), arrived_member(1), arrived_member(1), arrived_member(2)),
            "2 processes claim to be rank 1, on a",
        ),
        "two hosts have the same task of the cluster": (
            led_job(*_TASKS),
            "2 processes claim to be worker 0, on b and c; no process is worker 1 (c:1)",
        ),
        "two jobs meet at one prefix of etcd": (
            gathering_job(
                arrived_member(0),
                arrived_member(1),
                _OTHER_JOB,
                joined=True,
                leads=True,
                place="etcd://node9:2379/a",
            ),
            "2 processes claim to be rank 1, on a; no process is rank 2",
        ),
    },
    silent_on={
        "each of three ranks exists once": gathering_job(
            arrived_member(0), arrived_member(1), arrived_member(2)
        ),
        "the first process with that rank has exited": gathering_job(
            arrived_member(0), ended_member(1, code=1), arrived_member(1)
        ),
    },
    drill=("wrong-rank", "tf-two-tasks", "same-rank", "same-task"),
    relations=Relations(
        ends_by_abort=True,
        raised_as=r"current incarnation doesn't match|with a different incarnation"
        r"|expects a different device incarnation",
    ),
)
