"""A parameter server uses all the CPU that it may, and the workers wait for it.

## Why it matters
Every step of every worker reads the variables from the servers and sends gradients back. When a server
cannot keep up, more workers make no more steps: each only stands longer in `Session.run`.

What waits for what: the workers, for this server's turn. How long: the greater part of each step, as
the shares below say. No other worker is the cause.

## What to do
More servers (`--ps 2`) and large variables cut into parts (`partitioner=` of `get_variable`,
`variable_partitioner=` of ParameterServerStrategy); more cores for the server; larger batches, so
that there are fewer exchanges for the same data; sparse gradients for embeddings.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.evidence.servers import SERVER_JOBS, name, names, trainers, wait
from allaboard.facts import Certainty, Claim, Evidence, JobView, Load, Member, Severity, Stage
from allaboard.facts.samples import job, task

SPAN = 8.0
"""Seconds that must have been measured."""
FULL = 0.85
"""Share of the cores that it may use from which a server counts as saturated."""
INSIDE, WAITS = 0.8, 0.5
"""A worker waits that is inside an operation in this share of the looks, and uses less CPU (cores)."""


def check(view: JobView) -> Iterator[Claim]:
    waiting = [m for m in trainers(view) if m.alive and _waits(m)]
    if not waiting:
        return
    for one in view.alive:
        load = one.load
        measured = load.span >= SPAN and load.allowed > 0
        if one.who.job in SERVER_JOBS and measured and load.cpu >= FULL * load.allowed:
            yield _claim(view, one, waiting)


def _waits(one: Member) -> bool:
    load = one.load
    return one.step > 0 and load.span >= SPAN and load.inside >= INSIDE and load.cpu < WAITS


def _claim(view: JobView, one: Member, waiting: list[Member]) -> Claim:
    cores = "1 core" if one.load.allowed == 1 else f"{one.load.allowed} cores"
    shares = "; ".join(
        f"{name(m)} inside its step in {m.load.inside:.0%} of the looks, {m.load.cpu:.2f} cores"
        for m in waiting[:4]
    )
    return Claim(
        summary=f"{name(one)} is saturated: it uses {one.load.cpu:.2f} of the {cores} that it may, "
        f"and {names(waiting)} {wait(waiting)} for it",
        who=(one.who,),
        evidence=(
            Evidence(
                f"{one.load.cpu:.2f} cores over {one.load.span:.0f} s", "/proc stat, affinity"
            ),
            Evidence(shares, "black box, /proc"),
        ),
        fix="allaboard run --ps 2 ... and cut large variables into parts (partitioner=); "
        "or give it more cores",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
    )


def _load(cpu: float, inside: float = 0.0, allowed: int = 8) -> Load:
    return Load(span=10.0, cpu=cpu, allowed=allowed, inside=inside)


_WAITING = (task("worker", 0, load=_load(0.1, 0.95)), task("worker", 1, load=_load(0.1, 0.9)))
RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    fires_on={
        "one core, all of it": (
            job(*_WAITING, task("ps", 0, load=_load(0.97, allowed=1))),
            "ps 0 is saturated: it uses 0.97 of the 1 core that it may, "
            "and worker 0, worker 1 wait for it",
        ),
    },
    silent_on={
        "a busy server whose workers compute": job(
            task("worker", 0, load=_load(3.0, 0.95)), task("ps", 0, load=_load(7.9))
        ),
        "asynchronous workers in turn with an idle server": job(
            *_WAITING, task("ps", 0, load=_load(0.3))
        ),
        "measured too briefly": job(
            *_WAITING, task("ps", 0, load=Load(span=1.0, cpu=8.0, allowed=8))
        ),
    },
    since="0.1",
    unstaged="tried on two cores, with the server pinned to one: it did not fire in 110 s, and "
    "why was not measured; its tests are made facts alone",
)
