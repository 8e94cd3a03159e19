"""Breakdown of a worker's time in a job with parameter servers: own code, computing, and waiting for whom.

Measured are the time of each worker inside an operation (Session.run, join), the CPU time of its process, the
share of its allowed CPU that each server uses, and the share of the time with data in transit between the
two. Time inside an operation that the worker's CPU time does not explain is a wait, so that a wait is
reported too short rather than too long. An asynchronous worker waits for servers only. In a synchronous one,
what the servers' CPU and the links explain is a wait for servers; the rest is a wait for workers. The seconds
in which workers of TensorFlow 1 poll whether the chief has initialised the variables are counted separately.
"""

from __future__ import annotations

import msgspec

from allaboard.analysis.parameter_servers.task_roles import AWAIT_CHIEF_OP, SERVER_JOBS, only_serves
from allaboard.facts import JobView, Load, Member, Pair
from allaboard.facts.memo import cached_per_view

MIN_MEASURED_S = 3.0
"""Seconds of measurement needed for a breakdown."""


class TimeBreakdown(msgspec.Struct, frozen=True, kw_only=True):
    """How a worker spent its time, in shares that add up to 1."""

    span: float
    """Seconds measured."""
    own_code: float
    """Share outside the framework's operations."""
    computing: float
    """Share spent computing, at most."""
    waiting_for_servers: float
    """Share spent waiting for servers, at least."""
    waiting_for_workers: float
    """Share spent waiting for other workers, at least."""
    waiting_for_chief: float = 0.0
    """Share spent polling whether the chief has initialised the variables."""
    busiest_server: str = ""
    """The server that the evidence points at ("ps:0"); "" for none."""
    strength: float = 0.0
    """Share of the time in which that server or its link was busy, or the server was stopped or gone."""

    @property
    def waiting(self) -> float:
        """Return the share spent waiting for anybody."""
        return self.waiting_for_servers + self.waiting_for_workers + self.waiting_for_chief


def break_down_time(
    view: JobView, member: Member, whole_training: bool = False
) -> TimeBreakdown | None:
    """Return the breakdown of the last seconds, or of the whole training.

    Return None for a server, and while too little is measured.
    """
    load = member.run if whole_training else member.load
    if member.who.job in SERVER_JOBS or member.who.job == "evaluator" or load.span < MIN_MEASURED_S:
        return None
    if member.op is not None and member.op.name == AWAIT_CHIEF_OP:
        return None  # it waits for the chief, and no server holds it up
    busiest, strength = _find_busiest_server(view, member, whole_training)
    if only_serves(member):  # a worker of TensorFlow 2: it computes what the chief sends to it
        computing = min(1.0, load.cpu)
        servers = min(1.0 - computing, strength)
        return TimeBreakdown(
            span=load.span, own_code=0.0, computing=computing, waiting_for_servers=servers,
            waiting_for_workers=1.0 - computing - servers, busiest_server=busiest, strength=strength,
        )  # fmt: skip
    inside_ops = load.operation_share - load.chief
    # Threads outside of the operation may use CPU, too, so this is an upper bound of the computing.
    computing = min(inside_ops, load.cpu)
    waiting = inside_ops - computing
    if _hands_out_work(view, member):
        servers = 0.0
    elif "synchronous" in member.notes:
        servers = min(waiting, strength)
    else:
        servers = waiting
    return TimeBreakdown(
        span=load.span, own_code=1.0 - load.operation_share, computing=computing, waiting_for_servers=servers,
        waiting_for_workers=waiting - servers, waiting_for_chief=load.chief,
        busiest_server=busiest, strength=strength,
    )  # fmt: skip


def find_live_server(view: JobView, task: str) -> Member | None:
    """Return the live process of this server ("ps:0"), or None."""
    return next((m for m in view.alive if f"{m.who.job}:{m.who.index}" == task), None)


def pair_with(member: Member, task: str) -> Pair:
    """Return what a member exchanges with a task; all zero if nothing is measured."""
    return next((p for p in member.pairs if p.task == task), Pair(task=task))


def transfer_share(view: JobView, member: Member, task: str) -> float:
    """Return the share of the time with data in transit between a member and a task, in either direction.

    Each end counts only what it sends itself.
    """
    server = find_live_server(view, task)
    server_share = (
        pair_with(server, f"{member.who.job}:{member.who.index}").busy
        if server is not None
        else 0.0
    )
    return max(pair_with(member, task).busy, server_share)


def cpu_share(load: Load) -> float:
    """Return the CPU time used as a share of what is allowed; 0.0 if the limit is not known."""
    return load.cpu / load.allowed if load.allowed > 0 else 0.0


def _find_busiest_server(view: JobView, member: Member, whole_training: bool) -> tuple[str, float]:
    busiest, strength = "", 0.0
    for server in all_servers(view):
        task = f"{server.who.job}:{server.who.index}"
        load = server.run if whole_training else server.load
        busy = max(
            cpu_share(load),
            transfer_share(view, member, task),
            load.stopped,
            _dead_share(view, member, server, whole_training),
        )
        if not busiest or busy > strength:
            busiest, strength = task, min(1.0, busy)
    return busiest, strength


def _dead_share(view: JobView, member: Member, server: Member, whole_training: bool) -> float:
    """Return the share of the member's time in which this server was dead and not yet replaced."""
    end, span = server.exit, (member.run if whole_training else member.load).span
    if (
        end is None
        or end.ours
        or find_live_server(view, f"{server.who.job}:{server.who.index}") is not None
    ):
        return 0.0
    until = member.exit.ended_at if member.exit is not None else view.now
    return min(1.0, max(0.0, until - end.ended_at) / span)


def _hands_out_work(view: JobView, member: Member) -> bool:
    """Return True if the member is the chief of TensorFlow 2, whose steps are done by serving workers."""
    return any(m is not member for m in _serving_workers(view))


@cached_per_view
def all_servers(view: JobView) -> tuple[Member, ...]:
    """Return the parameter servers, including dead ones."""
    return tuple(m for m in view.members if m.who.job in SERVER_JOBS)


@cached_per_view
def _serving_workers(view: JobView) -> tuple[Member, ...]:
    return tuple(m for m in view.members if m.who.job == "worker" and only_serves(m))
