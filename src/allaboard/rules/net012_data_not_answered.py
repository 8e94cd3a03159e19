"""A worker's own connection to another host of the job gets no answer, while it starts or reduces.

## Why it matters
The roll call was complete, and still the framework's start or a collective does not return: a firewall
drops the port that the framework picked, or what is sent over an open connection is lost on the way. No
framework says so, and your timeout does not end it.

## What to do
Open TCP on all ports above 1024 between the two hosts, both ways; for NCCL and gloo the ports are taken
from the range in /proc/sys/net/ipv4/ip_local_port_range. If connections are made and then fall silent, look
for a stateful firewall that forgets or limits connections, and check the MTU.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.network.link_faults import four, on_host
from allaboard.analysis.network.unacked_links import SilentLink, silent_links
from allaboard.contracts import Relations, Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member, Op, Phase, Silence, Stage
from allaboard.facts.samples import NOW


def check(view: JobView) -> Iterator[Claim]:
    for link in silent_links(view):
        first, silence = link.cases[0]
        address = silence.address
        call = f"inside {first.op.name}" if first.op is not None else _call(first)
        host, other = link.one, link.other
        yield Claim(
            summary=_summary(link, address, call),
            who=tuple(m.who for m in view.members if m.who.host in (host, other)),
            evidence=tuple(_seen(m, s) for m, s in link.cases[:4]),
            fix=f"open TCP on all ports above 1024 between {host} and {other}, both ways; on {host}: "
            f"nc -vz -w3 {address.rpartition(':')[0].strip('[]')} {address.rpartition(':')[2]}",
            # A host that is overwhelmed drops as a firewall does.
            certainty=Certainty.LIKELY,
            since=first.op.since if first.op is not None else first.phase_since,
        )


def _summary(link: SilentLink, address: str, call: str) -> str:
    if link.lost is not None:
        source, target = link.lost
        return (
            f"packets from {source} to {target} are lost, {call} at {address}; those from "
            f"{target} to {source} arrive"
        )
    words = "cannot connect to" if link.kind == "connect" else "gets no answer to what it sends to"
    return f"{link.one} {words} {link.other} at {address}, {call}: no packet comes back"


def _seen(member: Member, silence: Silence) -> Evidence:
    more = "no answer"
    if silence.kind == "send" and silence.heard is not None:
        more = "not acknowledged; " + (
            "packets of the other side come in" if silence.heard else "nothing comes in"
        )
    return Evidence(
        f"{silence.kind} {silence.address}: sent again and again, {more}",
        f"TCP_INFO of pid {member.who.pid} on {member.who.host}",
    )


def _call(member: Member) -> str:
    call = member.declared.call if member.declared is not None else "init"
    return f"after {call}" if member.phase > Phase.JOINING else f"inside {call}"


def _four(rank: int, *silent: Silence, **changes: object) -> JobView:
    """Four hosts past the roll call; ``silent`` is what rank ``rank`` gets no answer to."""
    from msgspec.structs import replace

    fields: dict[str, object] = {"phase": Phase.JOINING, "phase_since": NOW - 5}
    members = tuple(
        on_host(i, **(fields | ({"unanswered": silent} | changes if i == rank else {})))
        for i in range(4)
    )
    return replace(four(), members=members, rolled_at=NOW - 5)


_REDUCE = Op("all_reduce", 3, NOW - 5)
RULE = Rule(
    stage=Stage.NETWORK,
    reads=JobView,
    check=check,
    fires_on={
        "data ports dropped": (
            _four(1, Silence("connect", "10.0.0.2:38211")),
            "h1 cannot connect to h2 at 10.0.0.2:38211, inside init_process_group: no packet comes back",
        ),
        "a connection that fell silent": (
            _four(1, Silence("send", "10.0.0.2:38211", False), op=_REDUCE),
            "h1 gets no answer to what it sends to h2 at 10.0.0.2:38211, inside all_reduce: "
            "no packet comes back",
        ),
        "before the first step": (
            _four(1, Silence("connect", "10.0.0.2:38211"), phase=Phase.JOINED),
            "h1 cannot connect to h2 at 10.0.0.2:38211, after init_process_group: no packet comes back",
        ),
        "one way alone": (
            _four(2, Silence("send", "10.0.0.1:38211", True), op=_REDUCE),
            "packets from h2 to h1 are lost, inside all_reduce at 10.0.0.1:38211; those from h1 to h2 "
            "arrive",
        ),
    },
    silent_on={
        "all is well": _four(1),
        "somebody else's server": _four(1, Silence("connect", "10.9.9.9:443")),
        "its own host": _four(1, Silence("connect", "10.0.0.1:38211")),
    },
    since="0.1",
    drill=(
        "data-silent",
        "link-lost",
        "link-lost-one-way",
        "link-lost-tensorflow",
        "link-lost-leader",
    ),
    passes=True,
    relations=Relations(seen_while_waiting=True),
)
