"""Workers wait for a slow network link to a parameter server.

## Why it matters
Every step transfers the variables in one direction and the gradients in the other. If a link has a low
bandwidth or a high latency, both ends are idle during the transfer, and neither more CPU for the servers nor
faster workers changes that. One slow link to one of several servers delays every step, since a step needs
them all.

The named workers wait inside `Session.run` for transfers to or from the named server, for the share of the
time that the finding gives. There are two kinds: with a low bandwidth, the round trip is far longer while the
link is full than at its best; with a high latency, it is always long.

## What to do
Look at the link on the host with `ss -ti` and `ip -s link`: see what else uses it, and whether it is the
intended interface.

- Low bandwidth: place the large variables on servers with a better link, or partition them over all servers.
  Use larger batches, so that there are fewer exchanges for the same data, and sparse gradients.
- High latency: move the hosts closer together, and do more work in each step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from allaboard.analysis.member_names import name_members
from allaboard.analysis.parameter_servers import (
    FAR_SERVER_RTT_S,
    ServerLink,
    find_full_links,
    task_name,
    wait_verb,
)
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Load, Member, Pair, Severity, Who
from allaboard.facts.link import Silence
from allaboard.facts.samples import ps_member, sample_job

FAST_LINK_BYTES_PER_S = 125e6
"""Bytes per second (a gigabit link): a faster exchange is no slow link, unless others are faster still."""


def check(view: JobView) -> Iterator[Claim]:
    full, free = find_full_links(view)
    if not full or (
        not free
        and not any(
            w.least_rtt >= FAR_SERVER_RTT_S or w.speed < FAST_LINK_BYTES_PER_S for w in full
        )
    ):
        return  # a fast network that is fully used
    workers = list({w.worker.event_key: w.worker for w in full}.values())
    servers = list({w.server.event_key: w.server for w in full}.values())
    yield _claim(full, free, workers, servers, _members_with_slow_link(workers, servers, free))


def _members_with_slow_link(
    workers: list[Member], servers: list[Member], free: tuple[ServerLink, ...]
) -> list[Member]:
    """Return the members whose link is slow: the workers if others reach the same servers easily, the one
    server if the workers reach other servers easily, else both ends."""
    if all(any(w.server.event_key == s.event_key for w in free) for s in servers):
        return workers
    with_room = {w.worker.event_key for w in free}
    if len(servers) == 1 and (len(workers) > 1 or workers[0].event_key in with_room):
        return servers
    if len(workers) == 1 and len(servers) > 1:
        return workers
    return [*servers, *workers] if len(servers) == len(workers) == 1 else servers


def _claim(
    full: tuple[ServerLink, ...], free: tuple[ServerLink, ...],
    workers: list[Member], servers: list[Member], blamed: list[Member],
) -> Claim:  # fmt: skip
    worst = max(full, key=lambda w: w.busy)
    evidence = [Evidence(_describe_link(worst), "sock_diag")]
    if free:
        best = min(free, key=lambda w: w.busy)
        evidence.append(Evidence(_describe_link(best), "sock_diag"))
    evidence.append(
        Evidence(f"{task_name(worst.server)} uses {worst.server.load.cpu:.2f} cores", "/proc stat")
    )
    high_latency = worst.least_rtt >= FAR_SERVER_RTT_S
    return Claim(
        summary=f"{name_members(workers)} {wait_verb(workers)} for the network to {name_members(servers)}: "
        + (
            f"a round trip takes at least {worst.least_rtt * 1000:.0f} ms"
            if high_latency
            else f"the link is full {worst.busy:.0%} of the time at {worst.rate / 1e6:.2g} MB/s"
        ),
        who=tuple(m.who for m in blamed),
        evidence=tuple(evidence),
        fix="move the hosts closer together, or do more work in each step (larger batches)"
        if high_latency
        else f"on {blamed[0].who.host}: ip -s link; ss -ti   # then use larger batches, or place the "
        "large variables on servers with a better link",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
    )


def _describe_link(link: ServerLink) -> str:
    return (
        f"{task_name(link.worker)} and {task_name(link.server)}: {link.rate / 1e6:.2g} MB/s, data in flight "
        f"{link.busy:.0%} of the time, round trip {link.rtt * 1000:.2g} ms, at best "
        f"{link.least_rtt * 1000:.2g} ms"
    )


def _identity(job: str, index: int, number: int) -> Who:
    return Who(job=job, index=index, rank=number, host=f"h{number}", pid=100 + number)


def _worker(
    index: int,
    *busy: float,
    waiting: float = 0.9,
    least: float = 0.0002,
    rate: float = 8e5,
    delivers: float = 0.0,
    **more: Any,
) -> Member:
    pairs = tuple(
        Pair(
            task=f"ps:{i}",
            connections=1,
            received=rate / 2,
            sent=rate / 2,
            busy=b,
            rtt=0.3,
            least=least,
            delivers=delivers,
        )
        for i, b in enumerate(busy)
    )
    load = Load(span=10.0, cpu=0.1, allowed=8, operation_share=waiting)
    identity = _identity("worker", index, index)
    return ps_member("worker", index, who=identity, load=load, pairs=pairs, **more)


def _server(index: int, cpu: float = 0.1) -> Member:
    identity = _identity("ps", index, 2 + index)
    return ps_member(
        "ps", index, number=2 + index, who=identity, load=Load(span=10, cpu=cpu, allowed=1)
    )


_BOTH = (_server(0), _server(1))
_NEAR = ps_member("ps", 0, who=_identity("ps", 0, 0), load=Load(span=10, cpu=0.1, allowed=1))
RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "the links to one of two servers are full": (
            sample_job(_worker(0, 0.1, 0.95), _worker(1, 0.1, 0.9), *_BOTH),
            "worker 0, worker 1 wait for the network to ps 1: the link is full 95% of the time at 0.8 MB/s",
        ),
        "all links of one of two workers are full": (
            sample_job(_worker(0, 0.1, 0.1), _worker(1, 0.8, 0.9), *_BOTH),
            "worker 1 waits for the network to ps 0, ps 1: the link is full 90% of the time at 0.8 MB/s",
        ),
        "one worker's link to one of two servers is full": (
            sample_job(_worker(0, 0.1, 0.1), _worker(1, 0.1, 0.9), *_BOTH),
            "worker 1 waits for the network to ps 1: the link is full 90% of the time at 0.8 MB/s",
        ),
        "a link of low bandwidth, as the kernel measures it too": (
            sample_job(_worker(0, 0.66, rate=8.3e5, delivers=1e6), _server(0)),
            "worker 0 waits for the network to ps 0: the link is full 66% of the time at 0.83 MB/s",
        ),
        "a link with a round trip of 50 ms": (
            sample_job(_worker(0, 0.9, least=0.05), _server(0)),
            "worker 0 waits for the network to ps 0: a round trip takes at least 50 ms",
        ),
    },
    silent_on={
        "links with room, on hosts whose processes are slow to answer": sample_job(
            _worker(0, 0.65, rate=5e6, delivers=4e9),
            _worker(1, 0.62, rate=5e6, delivers=1e8),
            *_BOTH,
        ),
        "a link on which no data gets through": sample_job(_worker(0, 1.0, rate=0.0), _server(0)),
        "a link that has just been broken": sample_job(
            _worker(0, 0.9, unanswered=(Silence("send", "10.0.0.2:29500"),)), _server(0)
        ),
        "asynchronous workers with room on every link": sample_job(
            _worker(0, 0.2, 0.25), _worker(1, 0.1), *_BOTH
        ),
        "the server computes all the time": sample_job(_worker(0, 0.9), _server(0, cpu=0.95)),
        "the worker spends most of its time in its own code": sample_job(
            _worker(0, 0.9, waiting=0.2), _server(0)
        ),
        "a fast network that is fully used": sample_job(
            _worker(0, 0.8, rate=3e8), _worker(1, 0.8, rate=3e8), _server(0)
        ),
        "the worker and the server are on one host": sample_job(_worker(0, 0.9), _NEAR),
    },
    drill=("ps-slow-link", "ps-slow-link-of-worker"),
)
