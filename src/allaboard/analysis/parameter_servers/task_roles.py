"""Roles of tasks in jobs with parameter servers: which only serve, which train, and when the work is done."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from allaboard.facts import Exit, JobView, Member, Phase
from allaboard.facts.configuration.cluster import AUXILIARY_JOBS
from allaboard.facts.memo import cached_per_view
from allaboard.facts.signal_name import signal_name

SERVER_JOBS = ("ps",)
"""Job names of parameter servers."""
COLLECTIVE_STRATEGY = "MultiWorkerMirroredStrategy"
"""What a member of a collective strategy of TensorFlow declares."""
TF2_CHIEF_CALL = "ParameterServerStrategy"
"""What the chief of TensorFlow 2's parameter servers declares; such a job depends on it."""
SESSION_CREATION_OPS = ("SessionManager.prepare_session", "SessionManager.recover_session")
"""Operations in which the chief of TensorFlow 1 makes its session, and waits for every server."""
AWAIT_CHIEF_OP = "SessionManager.wait_for_session"
"""Operation in which any other worker of TensorFlow 1 waits until the chief has initialised the variables."""
COORDINATOR_JOIN_OP = "Coordinator.join"
"""Operation in which a worker of TensorFlow 1 that has left its loop waits for its own threads."""
SERVER_JOIN_OP = "Server.join"
"""Operation in which a server, or a worker of TensorFlow 2, stays for the whole job."""
SERVER_CALL = "tf.distribute.Server"
"""What a task declares that has started a server."""


@cached_per_view
def has_parameter_servers(view: JobView) -> bool:
    """Return True if the job has parameter servers."""
    return any(m.who.job in SERVER_JOBS or m.serving for m in view.members)


def only_serves(member: Member) -> bool:
    """Return True if the member only serves: a ps, or a process in `Server.join` (workers of TensorFlow
    2)."""
    if member.has_no_part:
        return False
    is_joined = member.op is not None and member.op.name == SERVER_JOIN_OP
    return member.who.job in SERVER_JOBS or is_joined or member.serving


def mark_workers_of_chief(members: tuple[Member, ...]) -> tuple[Member, ...]:
    """Return the members, with the workers of a TensorFlow 2 chief marked as serving.

    Some of these workers wait in a loop or for an event of their own instead of in `Server.join`.
    """
    if not any(m.declared is not None and m.declared.call == TF2_CHIEF_CALL for m in members):
        return members
    return tuple(
        [msgspec.structs.replace(m, serving=True) if _is_handed_work(m) else m for m in members]
    )


def _is_handed_work(member: Member) -> bool:
    """Return True if the member is a worker with a server that has done no step itself."""
    declared = member.declared
    return (
        declared is not None
        and declared.call == SERVER_CALL
        and declared.job == "worker"
        and member.step == 0
    )


@cached_per_view
def training_members(view: JobView) -> tuple[Member, ...]:
    """Return the members that train; when all of these have ended, the work is done.

    Child processes that have declared no part do not count: how they end says nothing about the work, and
    some outlive it.
    """
    return tuple(m for m in view.members if not only_serves(m) and not is_auxiliary(m))


def is_auxiliary(member: Member) -> bool:
    """Return True if training goes on while this member is stopped.

    That is so for an evaluator, a launcher, and a child process that has declared no part in the job.
    """
    return member.who.job in AUXILIARY_JOBS or member.has_no_part


def nobody_trains(view: JobView) -> bool:
    """Return True if no live member trains."""
    return not any(m.alive for m in training_members(view))


def are_servers_in_use(view: JobView) -> bool:
    """Return True if a live server of this host exchanged data with any task in the last seconds."""
    pairs = (p for m in view.alive if only_serves(m) and not m.is_on_other_host for p in m.pairs)
    return any(p.received > 0 or p.sent > 0 for p in pairs)


def leftover_members(view: JobView) -> tuple[Member, ...]:
    """Return the live servers and evaluators after all training members have exited with code 0, else ().

    Members whose host was interrupted do not count: the others went on without them.
    """
    if not has_parameter_servers(view):
        return ()
    trainers_left = uninterrupted_trainers(view)
    if not trainers_left or any(m.exit is None or m.exit.code != 0 for m in trainers_left):
        return ()
    return tuple(m for m in view.alive if not m.candidate)


def uninterrupted_trainers(view: JobView) -> tuple[Member, ...]:
    """Return the training members whose host was not interrupted; the job goes on with these."""
    return tuple(m for m in training_members(view) if m.interrupted is None)


def is_collective_beside_servers(member: Member) -> bool:
    """Return True if a member's collective strategy ignores the servers that its cluster lists."""
    declared = member.declared
    return (
        declared is not None
        and declared.call == COLLECTIVE_STRATEGY
        and any(t.startswith("ps:") for t in declared.cluster)
    )


def can_go_on_without(view: JobView, member: Member) -> bool:
    """Return True if the job can go on without this member.

    The chief of TensorFlow 2 gives the work of a lost worker to another one, and goes on while there is one.
    """
    if (
        member.who.job != "worker"
        or not only_serves(member)
        or (member.exit is not None and member.exit.lost)
    ):
        return False
    chiefs = [
        m for m in view.members if m.declared is not None and m.declared.call == TF2_CHIEF_CALL
    ]
    # Without a live or well-ended chief there is nobody to hand the work on.
    is_chief_well = any(m.exit is None or m.exit.code == 0 for m in chiefs)
    return is_chief_well and any(m.who.job == "worker" and only_serves(m) for m in view.alive)


def has_lost_server(view: JobView) -> bool:
    """Return True if a server is dead or stopped: the training members wait for it, whatever else they do."""
    return any(
        server is not None and (not server.alive or server.is_stopped)
        for server in _newest_servers(view)
    )


def workers_wait_for_peers(view: JobView) -> bool:
    """Return True if training members wait for each other: with servers, only in a synchronous optimizer."""
    return not has_parameter_servers(view) or any(
        "synchronous" in m.notes for m in training_members(view)
    )


def _newest_servers(view: JobView) -> list[Member | None]:
    """Return the newest process of each server."""
    indices = {m.who.index for m in view.members if m.who.job in SERVER_JOBS}
    return [find_task(view, job, index) for job in SERVER_JOBS for index in sorted(indices)]


def awaited_by_servers(view: JobView) -> tuple[Member, ...]:
    """Return the members that servers still live for, if no training member has failed.

    These are the members that still train, and after them the evaluators.
    """
    trainers_of_job = training_members(view)
    all_fine = all(m.exit is None or m.exit.code == 0 for m in trainers_of_job)
    if not (trainers_of_job and all_fine and any(only_serves(m) for m in view.alive)):
        return ()
    return tuple(m for m in trainers_of_job if m.alive) or tuple(
        m for m in view.alive if m.who.job in AUXILIARY_JOBS
    )


@cached_per_view
def members_not_started(view: JobView) -> tuple[Member, ...]:
    """Return the live members that have not started while another waits for them.

    It waits in the creation of a session, or in a synchronous optimizer.
    """
    current_ops = {m.op.name for m in view.alive if m.op is not None}
    is_synchronous = any("synchronous" in m.notes and m.phase is Phase.TRAINING for m in view.alive)
    if not has_parameter_servers(view) or not (
        is_synchronous or current_ops & {AWAIT_CHIEF_OP, *SESSION_CREATION_OPS}
    ):
        return ()
    return tuple(m for m in view.alive if not m.launcher and not _has_started(m))


def _has_started(member: Member) -> bool:
    """Return True if the member serves, trains, or does its part of the start."""
    if member.who.job in SERVER_JOBS:
        return member.phase >= Phase.JOINED
    start_ops = (AWAIT_CHIEF_OP, SERVER_JOIN_OP, *SESSION_CREATION_OPS)
    return (
        member.step > 0
        or member.who.job in AUXILIARY_JOBS
        or (member.op is not None and member.op.name in start_ops)
    )


def task_name(member: Member) -> str:
    """Return the task's name as a person writes it: "ps 0"."""
    return member.who.name


def wait_verb(members: tuple[Member, ...] | list[Member]) -> str:
    """Return "waits" for one member, "wait" for several."""
    return "wait" if len(members) > 1 else "waits"


def describe_exit(end: Exit) -> str:
    """Return a verb phrase: "was killed by SIGKILL", "exited with code 1"."""
    if end.lost:
        return "was lost with its host"
    if end.signal is not None:
        return f"was killed by {signal_name(end.signal)}"
    return f"exited with code {end.code}" if end.code is not None else "exited (exit code unknown)"


def chief_task(view: JobView) -> tuple[str, int]:
    """Return job and index of the task that initialises the variables: the chief, else worker 0."""
    return find_chief_task(view.members)


def find_chief_task(members: Iterable[Member]) -> tuple[str, int]:
    """Return job and index of the task among these that initialises the variables."""
    jobs: set[str] = set()
    for member in members:
        jobs.add(member.who.job)
        if member.declared is not None:
            jobs |= {t.partition(":")[0] for t in member.declared.cluster}
    return next(((j, 0) for j in ("chief", "master") if j in jobs), ("worker", 0))


def find_task(view: JobView, job: str, index: int) -> Member | None:
    """Return the newest process of a task; None if none was ever seen."""
    processes = [m for m in view.members if (m.who.job, m.who.index) == (job, index)]
    # A restarted task has several processes: prefer the live one, then the newest.
    return max(processes, key=lambda m: (m.alive, m.phase_since), default=None)


def describe_activity(member: Member | None) -> str:
    """Return what a member that others wait for does instead, as a clause ("it is at train.py:3 in main")."""
    if member is None:
        return "no process of it was ever seen"
    if member.exit is not None:
        return f"it {describe_exit(member.exit)}"
    if member.is_stopped:
        return "it is stopped (SIGSTOP or Ctrl-Z)"
    user_frame = member.stack.user if member.stack is not None else None
    if user_frame is not None:
        return f"it is at {user_frame}"
    if member.phase is Phase.IMPORTING:
        return f"it is importing {member.detail}"
    return "it is alive, in its own code"
