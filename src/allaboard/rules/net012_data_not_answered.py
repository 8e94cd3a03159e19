"""A member's own connection to another host of the job gets no answer, while it starts or reduces.

## Why it matters
The roll call was passed, and still the framework's start or a collective does not come back: the
framework picked a port that a firewall drops, or what is sent over a connection that was made gets lost
on the way. No framework says so, and the timeout that it was given does not end it.

## What to do
Open TCP on all ports above 1024 between the two hosts, both ways; for NCCL and gloo the ports are taken from
the range in /proc/sys/net/ipv4/ip_local_port_range. Where connections are made and then fall silent, look
for a stateful firewall that forgets or limits connections, and for the MTU.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.evidence.crossings import four, on_host
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member, Op, Phase, Stage
from allaboard.facts.samples import NOW

WORDS = {"connect": "cannot connect to", "send": "gets no answer to what it sends to"}


def check(view: JobView) -> Iterator[Claim]:
    where = _hosts(view) if any(m.unanswered for m in view.alive) else {}
    found: dict[tuple[str, str, str], list[tuple[Member, str]]] = defaultdict(list)
    for member in view.alive:
        for text in member.unanswered:
            kind, _, address = text.partition(" ")
            other = where.get(address.rpartition(":")[0].strip("[]"), "")
            # Other programs' hosts, a metrics server, say, are no part of the job.
            if other and other != member.who.host and kind in WORDS:
                found[(kind, member.who.host, other)].append((member, address))
    for (kind, host, other), cases in found.items():
        first, address = cases[0]
        call = first.op.name if first.op is not None else _call(first)
        yield Claim(
            summary=f"{host} {WORDS[kind]} {other} at {address}, inside {call}: no packet comes back",
            who=tuple(m.who for m in view.members if m.who.host in (host, other)),
            evidence=tuple(
                Evidence(
                    f"{kind} {at}: sent again and again, no answer",
                    f"/proc/{m.who.pid}/net/tcp of {host}",
                )
                for m, at in cases[:4]
            ),
            fix=f"open TCP on all ports above 1024 between {host} and {other}, both ways; on {host}: "
            f"nc -vz -w3 {address.rpartition(':')[0]} {address.rpartition(':')[2]}",
            # A host that is overwhelmed drops as a firewall does.
            certainty=Certainty.LIKELY,
            since=first.op.since if first.op is not None else first.phase_since,
        )


def _hosts(view: JobView) -> dict[str, str]:
    """Addresses of the job's hosts, and whose they are."""
    known = {k.address.rpartition(":")[0].strip("[]"): k.target for k in view.links}
    told = {m.facts.get("data address", ""): m.who.host for m in view.members}
    return {a: h for a, h in (known | told).items() if a and h}


def _call(member: Member) -> str:
    return member.declared.call if member.declared is not None else "init"


def _four(rank: int, *texts: str, **changes: object) -> JobView:
    """Four hosts past the roll call; ``texts`` are what rank ``rank`` gets no answer to."""
    from msgspec.structs import replace

    fields: dict[str, object] = {"phase": Phase.JOINING, "phase_since": NOW - 5}
    members = tuple(
        on_host(i, **fields, **({"unanswered": texts} | changes if i == rank else {}))
        for i in range(4)
    )
    return replace(four(), members=members, rolled_at=NOW - 5)


RULE = Rule(
    stage=Stage.NETWORK,
    reads=JobView,
    check=check,
    fires_on={
        "data ports dropped": (
            _four(1, "connect 10.0.0.2:38211"),
            "h1 cannot connect to h2 at 10.0.0.2:38211, inside init_process_group: no packet comes back",
        ),
        "a connection that fell silent": (
            _four(1, "send 10.0.0.2:38211", op=Op("all_reduce", 3, NOW - 5)),
            "h1 gets no answer to what it sends to h2 at 10.0.0.2:38211, inside all_reduce: "
            "no packet comes back",
        ),
    },
    silent_on={
        "all is well": _four(1),
        "somebody else's server": _four(1, "connect 10.9.9.9:443"),
        "its own host": _four(1, "connect 10.0.0.1:38211"),
    },
    since="0.1",
    drill=("data-silent",),
)
