"""Where the time of a job with parameter servers goes: own code, computing, waiting, and for whom.

What is measured: how long each worker is inside an operation (Session.run, join), what CPU its process
uses, what CPU each server uses of what it may, and in which share of the time something between the
two was under way. What is concluded: time inside an operation that no CPU of the worker explains is a wait,
so that a wait is told too short rather than too long. An asynchronous worker waits for servers alone. In a
synchronous one, what the servers' CPU and the links explain is a wait for them; the rest is one for workers.
The seconds in which TensorFlow 1's workers look whether the chief has initialised are told by themselves.
"""

from __future__ import annotations

import msgspec

from allaboard.analysis.parameter_servers.parameter_servers import AWAITS_CHIEF, SERVER_JOBS, serves
from allaboard.facts import JobView, Load, Member, Pair
from allaboard.facts.memo import cached_per_view

LEAST = 3.0
"""Seconds that must have been measured."""


class Split(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of ``span`` s that make 1: in its ``own`` code, ``computing`` at the most, waiting for
    ``servers`` and for ``workers`` at the least, and for the ``chief`` to initialise. ``most`` is the server
    that the evidence points at (``ps:0``), ``strength`` how strongly: the share of the time in which it, or
    the way there, was busy, or it was stopped or gone."""

    span: float
    own: float
    computing: float
    servers: float
    workers: float
    chief: float = 0.0
    most: str = ""
    strength: float = 0.0

    @property
    def waiting(self) -> float:
        return self.servers + self.workers + self.chief


def split(view: JobView, member: Member, whole: bool = False) -> Split | None:
    """Of the last seconds, or of its ``whole`` training; None of a server, and while too little is
    measured."""
    load = member.run if whole else member.load
    if member.who.job in SERVER_JOBS or member.who.job == "evaluator" or load.span < LEAST:
        return None
    if member.op is not None and member.op.name == AWAITS_CHIEF:
        return None  # it waits for the chief, and no server holds it up
    most, strength = _strongest(view, member, whole)
    if serves(member):  # a worker of TensorFlow 2: it computes what the chief hands to it
        computing = min(1.0, load.cpu)
        servers = min(1.0 - computing, strength)
        return Split(
            span=load.span, own=0.0, computing=computing, servers=servers,
            workers=1.0 - computing - servers, most=most, strength=strength,
        )  # fmt: skip
    inside = load.inside - load.chief
    computing = min(inside, load.cpu)
    waiting = inside - computing
    if _hands_out(view, member):
        servers = 0.0
    elif "synchronous" in member.notes:
        servers = min(waiting, strength)
    else:
        servers = waiting
    return Split(
        span=load.span, own=1.0 - load.inside, computing=computing, servers=servers,
        workers=waiting - servers, chief=load.chief, most=most, strength=strength,
    )  # fmt: skip


def server_of(view: JobView, task: str) -> Member | None:
    """The living process of this server (``ps:0``)."""
    return next((m for m in view.alive if f"{m.who.job}:{m.who.index}" == task), None)


def pair(member: Member, task: str) -> Pair:
    """What a member exchanges with a task; all zero where nothing is measured."""
    return next((p for p in member.pairs if p.task == task), Pair(task=task))


def under_way(view: JobView, member: Member, task: str) -> float:
    """The share of the time in which something between the two was under way, one direction or the
    other: each end counts what it sends."""
    there = server_of(view, task)
    back = pair(there, f"{member.who.job}:{member.who.index}").busy if there is not None else 0.0
    return max(pair(member, task).busy, back)


def used(load: Load) -> float:
    """The share of the CPU that it may use."""
    return load.cpu / load.allowed if load.allowed > 0 else 0.0


def _strongest(view: JobView, member: Member, whole: bool) -> tuple[str, float]:
    best, strength = "", 0.0
    for server in servers(view):
        task = f"{server.who.job}:{server.who.index}"
        load = server.run if whole else server.load
        busy = max(
            used(load),
            under_way(view, member, task),
            load.stopped,
            _dead(view, member, server, whole),
        )
        if not best or busy > strength:
            best, strength = task, min(1.0, busy)
    return best, strength


def _dead(view: JobView, member: Member, server: Member, whole: bool) -> float:
    """The share of the time measured of one in which this server was gone, and nobody in its place."""
    end, span = server.exit, (member.run if whole else member.load).span
    if (
        end is None
        or end.ours
        or server_of(view, f"{server.who.job}:{server.who.index}") is not None
    ):
        return 0.0
    until = member.exit.at if member.exit is not None else view.now
    return min(1.0, max(0.0, until - end.at) / span)


def _hands_out(view: JobView, member: Member) -> bool:
    """Whether it is the chief of TensorFlow 2, whose steps are done by workers that serve."""
    return any(m is not member for m in _serving_workers(view))


@cached_per_view
def servers(view: JobView) -> tuple[Member, ...]:
    """The parameter servers, dead ones too."""
    return tuple(m for m in view.members if m.who.job in SERVER_JOBS)


@cached_per_view
def _serving_workers(view: JobView) -> tuple[Member, ...]:
    return tuple(m for m in view.members if m.who.job == "worker" and serves(m))
