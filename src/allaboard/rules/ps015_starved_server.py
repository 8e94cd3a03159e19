"""Other programs use the cores that a parameter server needs, and the workers wait for it.

This is reported if the server's threads were in the kernel's run queue most of the time, the cores that it
may use were busy, much of that load was not caused by this job, and no quota of the server explains it (that
is PS005: saturated by its own limit).

## Why it matters
A server that gets no core answers late, and every step of every worker needs it. Its own figures look
harmless: it uses little CPU, because it gets little.

The workers wait inside `Session.run` for their turn at the server, and the server waits for a core that
another program uses. The finding gives the shares of the time.

## What to do
Find out which program it is: `ps -eo pid,user,pcpu,args --sort=-pcpu | head` on that host. Run the server on
a host without other load, or reserve cores for it (`taskset`, `--cpus-per-task` in Slurm, a CPU request in
Kubernetes).
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.member_names import name_members
from allaboard.analysis.parameter_servers import (
    SERVER_JOBS,
    break_down_time,
    has_parameter_servers,
    task_name,
    wait_verb,
)
from allaboard.analysis.resources.host_load import find_throttling
from allaboard.contracts import Relations, Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Load, Member, Severity, Use
from allaboard.facts.samples import ps_member, sample_job

MIN_SPAN_S = 8.0
"""Seconds that must have been measured."""
MIN_QUEUED_THREADS = 0.7
"""Average number of the server's threads that wait for a core."""
MIN_BUSY_SHARE = 0.9
"""Share of its cores that must be busy, ..."""
MIN_FOREIGN_SHARE = 0.25
"""... and the share of them that this job does not use."""
MIN_WAIT_SHARE = 0.6
"""Share of a worker's time spent waiting for servers from which it counts as delayed by them."""


def check(view: JobView) -> Iterator[Claim]:
    if not has_parameter_servers(view):
        return
    held_up = [m for m in view.alive if _waits_for_servers(view, m)]
    starved = [
        (s, starvation)
        for s in view.alive
        if (starvation := _measure_starvation(view, s)) is not None
    ]
    if held_up and starved:
        server, (queued, taken, foreign_cores) = max(starved, key=lambda s: s[1][0].rate)
        yield _claim(server, held_up, queued, taken, foreign_cores)


def _waits_for_servers(view: JobView, member: Member) -> bool:
    shares = break_down_time(view, member)
    return (
        shares is not None
        and member.step > 0
        and shares.span >= MIN_SPAN_S
        and shares.waiting_for_servers >= MIN_WAIT_SHARE
    )


def _measure_starvation(view: JobView, server: Member) -> tuple[Use, Use, float] | None:
    """Return how long it is in the run queue, how its cores are used, and the cores that other programs use
    of them; None if it is not starved."""
    if server.who.job not in SERVER_JOBS or find_throttling(view, server) is not None:
        return None
    uses = {(u.name, u.pid): u for u in view.uses if u.host == server.who.host}
    queued, taken = (
        uses.get(("run queue", server.who.pid)),
        uses.get(("cores taken", server.who.pid)),
    )
    if queued is None or taken is None or min(queued.span, taken.span) < MIN_SPAN_S:
        return None
    if server.load.allowed < taken.limit:
        return None  # a quota of its own also makes its threads wait
    below = uses.get(("cores of the job", 0))
    foreign_cores = taken.rate - _cores_of_job(
        view, server, taken.limit, below.rate if below is not None else 0.0
    )
    full = (
        taken.rate >= MIN_BUSY_SHARE * taken.limit
        and foreign_cores >= MIN_FOREIGN_SHARE * taken.limit
    )
    return (queued, taken, foreign_cores) if full and queued.rate >= MIN_QUEUED_THREADS else None


def _cores_of_job(view: JobView, server: Member, cores: float, job_: float) -> float:
    """Return the cores that this job uses of those that the server may use: a member that may run on more of
    them counts in proportion, and children that are no members (part of ``job_``, the whole job) in full."""
    members = [m for m in view.alive if m.who.host == server.who.host]
    member_cores = sum(m.load.cpu * min(1.0, cores / max(m.load.allowed, cores)) for m in members)
    return member_cores + max(0.0, job_ - sum(m.load.cpu for m in members))


def _claim(
    server: Member, held_up: list[Member], queued: Use, taken: Use, foreign_cores: float
) -> Claim:
    cores = "1 core" if taken.limit == 1 else f"{taken.limit:g} cores"
    return Claim(
        summary=f"{task_name(server)} waits for a core: other programs on host {server.who.host} use about "
        f"{foreign_cores:.1f} of its {cores}, and {name_members(held_up)} {wait_verb(held_up)} for it",
        who=(server.who,),
        evidence=(
            Evidence(
                f"its threads wait {queued.rate:.1f} s a second over {queued.span:.0f} s, "
                f"it runs {server.load.cpu:.2f} s a second",
                queued.origin,
            ),
            Evidence(f"{taken.rate:.2f} of {taken.limit:g} cores are busy", taken.origin),
        ),
        fix=f"ps -eo pid,user,pcpu,args --sort=-pcpu | head   # on {server.who.host}; reserve cores for "
        "the server, or move it",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
    )


def _job(
    queued: float = 2.5,
    taken: float = 1.98,
    ours: float = 0.4,
    quota: float = 0.0,
    allowed: float = 2,
    cores: float = 2.0,
    busy: float = 0.1,
) -> JobView:
    workers = tuple(
        ps_member("worker", i, load=Load(span=10.0, cpu=busy, allowed=2, operation_share=0.95))
        for i in range(2)
    )
    server = ps_member("ps", 0, load=Load(span=10.0, cpu=0.15, allowed=allowed))
    pid, host = server.who.pid, server.who.host
    rates = (
        ("run queue", pid, queued, 0.0), ("cores taken", pid, taken, cores),
        ("cores of the job", 0, ours, 0.0), ("throttled", pid, quota, 0.2),
    )  # fmt: skip
    uses = tuple(
        Use(
            host=host, pid=p, name=n, value=9.0, limit=limit, rate=rate, fit=0.99, span=10.0,
            origin="/proc",
        )
        for n, p, rate, limit in rates
    )  # fmt: skip
    return sample_job(*workers, server, uses=uses)


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "another program, such as a compiler, uses most of the server's two cores": (
            _job(),
            "ps 0 waits for a core: other programs on host a use about 1.6 of its 2 cores, and worker 0, "
            "worker 1 wait for it",
        ),
        "another program uses part of the server's one core, and the workers another core": (
            _job(ours=0.9, taken=0.98, allowed=1, cores=1.0, busy=0.35),
            "ps 0 waits for a core: other programs on host a use about 0.4 of its 1 core, and worker 0, "
            "worker 1 wait for it",
        ),
    },
    silent_on={
        "the job's own workers fill the server's one core": _job(
            ours=0.9, taken=0.98, allowed=1, cores=1.0, busy=0.8
        ),
        "the job itself fills the cores of the host": _job(ours=1.9),
        "other programs compute, but the server seldom waits for a core": _job(queued=0.1),
        "some of the server's cores are idle": _job(taken=1.2),
        "the server's own quota throttles it, which PS005 reports": _job(quota=0.9),
        "the server has a quota of 0.2 cores, whose throttling is not measured yet": _job(
            allowed=0.2
        ),
    },
    passes=True,
    drill=("ps-starved",),
    relations=Relations(measured=True),
)
