"""A parameter server uses all its CPU, and the workers wait for it.

A server also counts as saturated if its control group throttles it for half of the time or more: the kernel
loses part of a small quota, so the server uses less than all of it.

## Why it matters
In every step, every worker reads the variables from the servers and sends gradients back. If a server cannot
keep up, more workers do not make more steps: each only waits longer in `Session.run`.

The workers wait for their turn at this server, during most of each step, as the shares in the finding show.
No other worker is the cause.

## What to do
Use more servers (`--ps 2`), and partition large variables (`partitioner=` of `get_variable`,
`variable_partitioner=` of ParameterServerStrategy). These also help: more cores for the server; larger
batches, so that there are fewer exchanges for the same data; sparse gradients for embeddings.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.member_names import name_members
from allaboard.analysis.parameter_servers import (
    SERVER_JOBS,
    TimeBreakdown,
    break_down_time,
    cpu_share,
    has_parameter_servers,
    task_name,
    wait_verb,
)
from allaboard.analysis.performance.recent_window import MIN_RECENT_SPAN_S as SOON
from allaboard.analysis.performance.recent_window import recent_view
from allaboard.analysis.resources.host_load import find_throttling
from allaboard.contracts import Relations, Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Load, Member, Severity, Use
from allaboard.facts.samples import SERVING, ps_member, sample_job

MIN_SPAN_S = 8.0
"""Seconds that must have been measured."""
MIN_CPU_SHARE = 0.85
"""Share of its cores that a server must use to count as saturated."""
MIN_WAIT_SHARE = 0.5
"""Share of a worker's time spent waiting for servers from which it counts as delayed by them, ..."""
MIN_RECENT_WAIT_SHARE = 0.75
"""... and the same over only a few seconds (SOON)."""


def check(view: JobView) -> Iterator[Claim]:
    if has_parameter_servers(view):
        yield from list(_saturated(view, MIN_SPAN_S, MIN_WAIT_SHARE)) or _saturated(
            recent_view(view), SOON, MIN_RECENT_WAIT_SHARE
        )


def _saturated(view: JobView, span: float, waits: float) -> Iterator[Claim]:
    """Report saturated servers for which a worker waits for this share of the time."""
    shares_of = [(m, break_down_time(view, m)) for m in view.alive]
    held_up = [
        (m, s) for m, s in shares_of if s is not None and _waits_for_servers(m, s, span, waits)
    ]
    for server in view.alive:
        if server.who.job not in SERVER_JOBS or server.load.span < span:
            continue
        withheld = find_throttling(view, server)
        if cpu_share(server.load) < MIN_CPU_SHARE and withheld is None:
            continue
        waiting_workers = [
            (m, s) for m, s in held_up if s.busiest_server == f"{server.who.job}:{server.who.index}"
        ]
        if waiting_workers:
            yield _claim(view, server, waiting_workers, withheld)


def _waits_for_servers(member: Member, shares: TimeBreakdown, span: float, waits: float) -> bool:
    working = member.step > 0 or shares.own_code == 0.0  # TensorFlow 2's workers do not count steps
    return working and shares.span >= span and shares.waiting_for_servers >= waits


def _claim(
    view: JobView,
    server: Member,
    waiting_workers: list[tuple[Member, TimeBreakdown]],
    withheld: Use | None,
) -> Claim:
    allowed = server.load.allowed
    cores = "1 core" if allowed == 1 else f"{allowed:g} cores"
    shares = "; ".join(
        f"{task_name(m)} waits for servers {s.waiting_for_servers:.0%} of the time, computes "
        f"{s.computing:.0%}"
        for m, s in waiting_workers[:4]
    )
    held_up = [m for m, _ in waiting_workers]
    evidence = [
        Evidence(
            f"{server.load.cpu:.2f} cores over {server.load.span:.0f} s",
            "/proc stat, affinity, control groups",
        ),
        Evidence(shares, "black box, /proc"),
    ]
    if withheld is not None:  # parts of a small quota are lost, so less than all of it is used
        throttling = f"{withheld.rate:.1f} s of throttling a second over {withheld.span:.0f} s"
        evidence.append(Evidence(throttling, withheld.origin))
    return Claim(
        summary=f"{task_name(server)} is saturated: it uses {server.load.cpu:.2f} of its {cores}, "
        f"and {name_members(held_up)} {wait_verb(held_up)} for it",
        who=(server.who,),
        evidence=tuple(evidence),
        fix=f"allaboard run --ps {_count_servers(view) + 1} ... and partition large variables "
        "(partitioner=); or give it more cores",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
    )


def _count_servers(view: JobView) -> int:
    return len({m.who.index for m in view.members if m.who.job in SERVER_JOBS})


def _load(cpu: float, waiting: float = 0.0, allowed: float = 8) -> Load:
    return Load(span=10.0, cpu=cpu, allowed=allowed, operation_share=waiting)


def _throttled_view(rate: float) -> JobView:
    """Return a view of two workers that wait for a server whose control group leaves it 0.05 of a core."""
    server = ps_member("ps", 0, load=_load(0.04, allowed=0.05))
    use = Use(
        host=server.who.host, pid=server.who.pid, name="throttled", value=9.0, limit=0.05, rate=rate,
        fit=0.99, span=10.0, origin="cpu.stat",
    )  # fmt: skip
    return sample_job(*_WAITING, server, uses=(use,))


def _recent_view_of(waiting: float, cpu: float) -> JobView:
    """Return a view whose last four seconds are like this, and before that the server kept up."""
    earlier, recent = _load(0.1, 0.3), Load(span=3.8, cpu=0.1, allowed=8, operation_share=waiting)
    now = Load(span=3.8, cpu=cpu, allowed=1)
    server = ps_member("ps", 0, load=_load(0.3, allowed=1), recent_load=now)
    return sample_job(
        *(ps_member("worker", i, load=earlier, recent_load=recent) for i in range(2)), server
    )


_WAITING = (
    ps_member("worker", 0, load=_load(0.1, 0.95)),
    ps_member("worker", 1, load=_load(0.1, 0.9)),
)
RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "a parameter server uses all of its one core": (
            sample_job(*_WAITING, ps_member("ps", 0, load=_load(0.97, allowed=1))),
            "ps 0 is saturated: it uses 0.97 of its 1 core, and worker 0, worker 1 wait for it",
        ),
        "a parameter server has used all of its one core for four seconds": (
            _recent_view_of(waiting=0.95, cpu=0.97),
            "ps 0 is saturated: it uses 0.97 of its 1 core, and worker 0, worker 1 wait for it",
        ),
        "a parameter server uses all of its container's quota of 0.2 cores": (
            sample_job(*_WAITING, ps_member("ps", 0, load=_load(0.2, allowed=0.2))),
            "ps 0 is saturated: it uses 0.20 of its 0.2 cores, and worker 0, worker 1 wait for it",
        ),
        "a parameter server is throttled 90 % of the time, and uses less than its small quota": (
            _throttled_view(0.9),
            "ps 0 is saturated: it uses 0.04 of its 0.05 cores, and worker 0, worker 1 wait for it",
        ),
        "a worker of TensorFlow 2 waits for a server that uses all of its core": (
            sample_job(
                ps_member("chief", 0, number=3, load=_load(0.1, 0.95)),
                ps_member("worker", 0, op=SERVING, step=0, load=_load(0.2, 1.0)),
                ps_member("ps", 0, load=_load(0.97, allowed=1)),
            ),
            "ps 0 is saturated: it uses 0.97 of its 1 core, and worker 0 waits for it",
        ),
    },
    silent_on={
        "a busy server whose workers compute": sample_job(
            ps_member("worker", 0, load=_load(3.0, 0.95)), ps_member("ps", 0, load=_load(7.9))
        ),
        "asynchronous workers wait in turn for a server with idle cores": sample_job(
            *_WAITING, ps_member("ps", 0, load=_load(0.3))
        ),
        "a server whose quota is rarely used up": _throttled_view(0.1),
        "a busy server for which the workers have waited 70 % of four seconds": _recent_view_of(
            waiting=0.7, cpu=0.97
        ),
        "a server that has used 70 % of its core for four seconds": _recent_view_of(
            waiting=0.95, cpu=0.7
        ),
        "a busy server that was measured for only one second": sample_job(
            *_WAITING, ps_member("ps", 0, load=Load(span=1.0, cpu=8.0, allowed=8))
        ),
    },
    passes=True,
    drill=("ps-saturated", "tf2-ps-saturated"),
    relations=Relations(measured=True),
)
