"""Tasks of a TensorFlow cluster, each held against who listens at its address. Pure.

A task of TensorFlow opens its port before it waits for any other, so an address of this host at which
nothing listens belongs to a task that has not come that far, or has ended. A task at whose address
something listens is never called missing, whether or not its process was examined.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from allaboard.analysis.parameter_servers import AUXILIARY_JOBS, UNSERVED_NOTE
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.analysis.stalls.stall import IDLE_CORES, MOVING_BYTES_PER_S, is_settled_stack
from allaboard.configuration import resolve
from allaboard.diagnosis.live.start_commands import command_for_task
from allaboard.facts import Address, Evidence, Finding, HostLook, Present, Who
from allaboard.facts.member import Declared, Member, Phase

_WAITS = (Spot.INIT, Spot.SESSION, Spot.STEP, Spot.COLLECTIVE, Spot.GROUP, Spot.SCHEDULED)
"""Places at which a task may wait for another one."""
MAX_SHOWN_TASKS = 4
"""Absent tasks whose addresses are evidence."""


class TaskRollCall(NamedTuple):
    """What is known of all tasks of a cluster."""

    members: tuple[Member, ...]
    """Members of the job, with their phases."""
    absent: tuple[str, ...] = ()
    """Tasks (``ps:1``) at whose address nothing listens, or that do not answer."""
    evidence: tuple[Evidence, ...] = ()
    """Why they are absent, and who waits."""
    start_command: str = ""
    """Command that starts the first of them; "" if it cannot be told."""
    elsewhere: tuple[str, ...] = ()
    """Sentences on tasks of other hosts, of which nothing can be seen here."""
    is_open: bool = False
    """True if the others only serve, so that nothing tells whether the absent ones have been there."""
    is_past_start: bool = False
    """True if the waiting tasks are in a step of a strategy whose start waits for all tasks: the absent ones
    had come, with all versions of TensorFlow from 2.9 on."""


def name_tasks(ranks: Sequence[Present]) -> list[Present]:
    """Return the processes, those of a TensorFlow cluster by the names of their tasks."""
    return [_named(process) for process in ranks]


def _named(process: Present) -> Present:
    if process.trains_without_tensorflow:
        return process
    spec = resolve(process.stated)
    index = spec.index.integer if spec.index is not None else None
    if not spec.cluster or spec.job is None or index is None:
        return process
    named = msgspec.structs.replace(
        process.member.who, job=spec.job.text, index=index, rank=spec.rank
    )
    return msgspec.structs.replace(
        process, member=msgspec.structs.replace(process.member, who=named)
    )


def call_tasks(
    looks: Sequence[HostLook], ranks: Sequence[Present], since: float
) -> TaskRollCall | None:
    """Return the roll call of the tasks (named by `name_tasks`), None if these are no tasks of one cluster.

    ``since``: from when on the processes were seen (s).
    """
    clusters = {json.dumps(c): c for p in ranks if (c := _cluster(p))}
    if len(clusters) != 1:
        return None
    cluster = next(iter(clusters.values()))
    tasks = {_task(p): p for p in ranks if _cluster(p)}
    listening = {t for t, p in tasks.items() if t in cluster and _listens(p, cluster[t])}
    taken = [p for p in ranks if p.member.who.job not in AUXILIARY_JOBS]
    waiting = _waiting_members(taken)
    absent: dict[str, str] = {}
    elsewhere = []
    for task in (t for t in cluster if t not in tasks):
        is_there, why = _look_for(task, cluster, looks, ranks, waiting, tasks)
        if is_there is False:
            absent[task] = why
        elif is_there is None:
            elsewhere.append(
                f"{_name(task)} ({cluster[task]}): not of this host, and no process of it was examined; "
                f"try: allaboard diagnose --hosts {Address.parse(cluster[task]).host or 'HOST'}"
            )
    is_past_start = _is_past_start(cluster, waiting)
    # Whoever was needed at the start has come then, wherever it is now.
    late = [
        t
        for t, p in tasks.items()
        if t in cluster
        and t not in listening
        and classify_stack(p.member.stack) not in _WAITS
        and not is_past_start
    ]
    if not waiting or not (absent or late):
        trained = (_training(p, _unserved_address(p, cluster, looks, ranks)) for p in taken)
        return TaskRollCall(tuple(trained), elsewhere=tuple(elsewhere))
    members = [_coming(p, cluster, _task(p) in late, since) for p in taken]
    members += [
        _unexamined(t, number, cluster, since)
        for number, t in enumerate(cluster)
        if t not in tasks and t not in absent
    ]
    example = waiting[0]
    spot = str(classify_stack(example.stack))
    user_frame = example.stack.user if example.stack is not None else None
    where = f" at {user_frame}" if user_frame is not None else ""
    return TaskRollCall(
        members=tuple(members),
        absent=tuple(absent),
        evidence=(
            *(Evidence(why, "TCP sockets") for why in list(absent.values())[:MAX_SHOWN_TASKS]),
            Evidence(f"{example.who.name} waits, {spot}{where}", "stacks"),
        ),
        start_command=command_for_task(next(iter(absent), ""), next(iter(tasks.values()))),
        elsewhere=tuple(elsewhere),
        is_open=all(classify_stack(m.stack) is Spot.SERVER for m in waiting),
        is_past_start=is_past_start,
    )


def explain_absence(finding: Finding, roll: TaskRollCall) -> Finding:
    """Return a finding on absent tasks, with what shows that they are absent and the command that starts
    one."""
    by_environment = [e for e in finding.evidence if e.origin not in ("stacks", "timeout")]
    fix = finding.fix
    if roll.start_command:
        fix = f"start {_name(roll.absent[0])} on its host: {roll.start_command}"
    elif roll.absent:
        fix = f"start {_name(roll.absent[0])} on its host, as the others were started"
    summary = finding.summary
    if roll.is_past_start and roll.absent:
        name = _name(roll.absent[0])
        more = f" and {len(roll.absent) - 1} more" if roll.absent[1:] else ""
        verb = "have" if more else "has"
        summary = f"{name}{more} {verb} ended, while the others train and wait for {'them' if more else 'it'}"
        fix = (
            f"see in the last output of {name} how it ended: its traceback, or dmesg -T | grep -i oom; then "
            f"restart all tasks; if {name} was never started: {roll.start_command or fix}"
        )
    elif roll.is_open and roll.absent:
        shown = ", ".join(map(_name, roll.absent[:MAX_SHOWN_TASKS]))
        verb = "are" if roll.absent[1:] else "is"
        summary = f"{shown} {verb} not there, and the others only serve: they have nothing to do"
        fix = f"see in the last output of {_name(roll.absent[0])} whether it has ended; else {fix}"
    return msgspec.structs.replace(
        finding, summary=summary, evidence=(*roll.evidence, *by_environment), fix=fix
    )


def _is_past_start(cluster: Mapping[str, str], waiting: Sequence[Member]) -> bool:
    """Return True if these members have come through the start of a strategy that waits for all tasks:
    MultiWorkerMirroredStrategy's does, and that of a chief which hands out steps. TensorFlow 1 waits for no
    parameter server."""
    spots = {classify_stack(m.stack) for m in waiting}
    if spots == {Spot.SCHEDULED}:
        return True
    return (
        bool(spots)
        and spots <= {Spot.STEP, Spot.COLLECTIVE}
        and all(task.partition(":")[0] in ("chief", "worker") for task in cluster)
    )


def _cluster(process: Present) -> dict[str, str]:
    """Return task to address for all tasks that take part in the process's cluster, in the order of ranks."""
    if process.trains_without_tensorflow:
        return {}
    return {f"{job}:{i}": a.text for job, i, a in resolve(process.stated).ranked_tasks}


def _task(process: Present) -> str:
    return f"{process.member.who.job}:{process.member.who.index}"


def _name(task: str) -> str:
    return task.replace(":", " ")


def _listens(process: Present, address: str) -> bool:
    port = Address.parse(address).port
    return any(s.state == "LISTEN" and Address.parse(s.local).port == port for s in process.sockets)


def _waiting_members(ranks: Sequence[Present]) -> list[Member]:
    """Return the members that wait for others: at one place that may be a wait, without computing and without
    data. Where all only serve, these wait for whoever gives them work."""
    idle = [
        p.member
        for p in ranks
        if p.member.cpu < IDLE_CORES
        and p.member.traffic < MOVING_BYTES_PER_S
        and is_settled_stack(p.member.stack)
        and not p.member.is_stopped
    ]
    waiting = [m for m in idle if classify_stack(m.stack) in _WAITS]
    serving = [m for m in idle if classify_stack(m.stack) is Spot.SERVER]
    return waiting or (serving if len(serving) == len(ranks) else [])


def _look_for(
    task: str,
    cluster: Mapping[str, str],
    looks: Sequence[HostLook],
    ranks: Sequence[Present],
    waiting: Sequence[Member],
    tasks: Mapping[str, Present],
) -> tuple[bool | None, str]:
    """Return True if the task is there, False if it is not, None if that cannot be seen; and why."""
    address = Address.parse(cluster[task])
    # The host that a listening task's address names is one that was looked at, whatever the name.
    named_here = {
        (Address.parse(cluster[t]).host, p.member.who.host)
        for t, p in tasks.items()
        if t in cluster and _listens(p, cluster[t])
    }
    hosts_looked_at = [
        look
        for look in looks
        if address.host in look.addresses or (address.host, look.host) in named_here
    ]
    for look in hosts_looked_at:
        if any(Address.from_endpoint(a).port == address.port for a in look.listeners):
            return True, ""
    if hosts_looked_at:
        return (
            False,
            f"nothing listens at {address} of {_name(task)} on {hosts_looked_at[0].host}",
        )
    waiting_pids = {(m.who.host, m.who.pid) for m in waiting}
    peers = [s for p in ranks for s in p.sockets if s.remote == str(address)]
    if any(s.state == "ESTAB" for s in peers):
        return True, ""
    if any(
        s.state == "SYN-SENT" and s.remote == str(address)
        for p in ranks
        if (p.member.who.host, p.member.who.pid) in waiting_pids
        for s in p.sockets
    ):
        return False, f"{address} of {_name(task)} does not answer (SYN-SENT)"
    return None, ""


def _training(process: Present, unserved_address: str) -> Member:
    member = process.member
    if unserved_address:
        notes = {**member.notes, UNSERVED_NOTE: unserved_address}
        member = msgspec.structs.replace(member, notes=notes)
    serves = classify_stack(member.stack) is Spot.SERVER
    return msgspec.structs.replace(member, serving=True) if serves else member


def _unserved_address(
    process: Present,
    cluster: Mapping[str, str],
    looks: Sequence[HostLook],
    ranks: Sequence[Present],
) -> str:
    """Return the task's address if nothing of its host listens there while other tasks of the cluster are
    connected with each other; "" if something does: its server may run in a process of its own.
    """
    text = cluster.get(_task(process), "")
    port = Address.parse(text).port if text else 0
    listeners = [
        a for look in looks if look.host == process.member.who.host for a in look.listeners
    ]
    if not text or any(Address.from_endpoint(a).port == port for a in listeners):
        return ""
    ports = {Address.parse(a).port for a in cluster.values()}
    is_used = any(
        s.state == "ESTAB" and Address.from_endpoint(s.remote).port in ports
        for p in ranks
        if p is not process
        for s in p.sockets
    )
    return text if is_used else ""


def _coming(process: Present, cluster: dict[str, str], is_late: bool, since: float) -> Member:
    member = process.member
    if is_late or _task(process) not in cluster:
        return msgspec.structs.replace(member, phase=Phase.IMPORTED, phase_since=since)
    return msgspec.structs.replace(
        member,
        phase=Phase.ARRIVED,
        phase_since=since,
        declared=_declaration(member.who, cluster, "TF_CONFIG"),
    )


def _unexamined(task: str, number: int, cluster: dict[str, str], since: float) -> Member:
    """Return a member for a task that is there, or that cannot be seen, and whose process was not
    examined."""
    job, _, index = task.partition(":")
    who = Who(job=job, index=int(index), rank=list(cluster).index(task))
    return Member(
        who=who,
        worker=-1 - number,
        key=-1_000_000 - number,
        phase=Phase.ARRIVED,
        phase_since=since,
        declared=_declaration(who, cluster, "TF_CONFIG"),
    )


def _declaration(who: Who, cluster: dict[str, str], origin: str) -> Declared:
    return Declared(
        framework="tensorflow",
        call="init",
        rank=who.rank,
        world_size=len(cluster),
        job=who.job,
        index=who.index,
        cluster=cluster,
        origin=origin,
    )
