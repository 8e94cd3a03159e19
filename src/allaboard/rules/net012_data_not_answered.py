"""A worker's connection to another host of the job gets no answer during init or a collective.

## Why it matters
The roll call is complete, and still init or a collective does not return: a firewall drops the port that the
framework picked, or data sent over an open connection is lost on the way. No framework reports this, and your
timeout does not apply.

## What to do
Open TCP on all ports above 1024 between the two hosts in both directions; NCCL and gloo take their ports from
the range in /proc/sys/net/ipv4/ip_local_port_range. If connections are made and then go silent, look for a
stateful firewall that forgets or limits connections, and check the MTU.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.network.link_faults import example_four_hosts, example_host_member
from allaboard.analysis.network.unacked_links import SilentLink, find_silent_links
from allaboard.contracts import Relations, Rule
from allaboard.facts import Address, Certainty, Claim, Evidence, JobView, Member, Op, Phase, Silence
from allaboard.facts.samples import NOW


def check(view: JobView) -> Iterator[Claim]:
    for link in find_silent_links(view):
        first_member, silence = link.cases[0]
        address = silence.address
        call = (
            (f"inside {first_member.op.name}")
            if first_member.op is not None
            else _describe_call(first_member)
        )
        host, peer = link.host, link.peer_host
        yield Claim(
            summary=_summary(link, address, call),
            who=tuple(m.who for m in view.members if m.who.host in (host, peer)),
            evidence=tuple(_socket_evidence(m, s) for m, s in link.cases[:4]),
            fix=f"open TCP on all ports above 1024 between {host} and {peer} in both directions; on {host}: "
            f"nc -vz -w3 {Address.from_endpoint(address).host} {Address.from_endpoint(address).port}",
            # An overloaded host drops packets just as a firewall does.
            certainty=Certainty.LIKELY,
            since=first_member.op.since
            if first_member.op is not None
            else first_member.phase_since,
        )


def _summary(link: SilentLink, address: str, call: str) -> str:
    if link.lost_direction is not None:
        source, target = link.lost_direction
        return (
            f"packets from {source} to {target} are lost {call} ({address}); packets from "
            f"{target} to {source} arrive"
        )
    symptom = "cannot connect to" if link.kind == "connect" else "gets no answer from"
    return f"{link.host} {symptom} {link.peer_host} at {address} {call}: no packet comes back"


def _socket_evidence(member: Member, silence: Silence) -> Evidence:
    more = "no answer"
    if silence.kind == "send" and silence.heard is not None:
        more = "not acknowledged; " + (
            "packets of the other side arrive" if silence.heard else "nothing arrives"
        )
    return Evidence(
        f"{silence.kind} {silence.address}: retransmitting, {more}",
        f"TCP_INFO of pid {member.who.pid} on {member.who.host}",
    )


def _describe_call(member: Member) -> str:
    call = member.declared.call if member.declared is not None else "init"
    return f"after {call}" if member.phase > Phase.JOINING else f"inside {call}"


def _four(rank: int, *silent: Silence, **changes: object) -> JobView:
    """Return a view of four hosts after the roll call; ``silent`` are the connections of rank ``rank`` that
    get no answer."""
    from msgspec.structs import replace

    fields: dict[str, object] = {"phase": Phase.JOINING, "phase_since": NOW - 5}
    members = tuple(
        example_host_member(i, **(fields | ({"unanswered": silent} | changes if i == rank else {})))
        for i in range(4)
    )
    return replace(example_four_hosts(), members=members, rolled_at=NOW - 5)


_REDUCE = Op("all_reduce", 3, NOW - 5)
RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "connections to a data port get no answer inside init": (
            _four(1, Silence("connect", "10.0.0.2:38211")),
            "h1 cannot connect to h2 at 10.0.0.2:38211 inside init_process_group: no packet comes back",
        ),
        "an open connection has gone silent in a collective": (
            _four(1, Silence("send", "10.0.0.2:38211", False), op=_REDUCE),
            "h1 gets no answer from h2 at 10.0.0.2:38211 inside all_reduce: no packet comes back",
        ),
        "connections to a data port get no answer after init": (
            _four(1, Silence("connect", "10.0.0.2:38211"), phase=Phase.JOINED),
            "h1 cannot connect to h2 at 10.0.0.2:38211 after init_process_group: no packet comes back",
        ),
        "packets are lost in one direction only": (
            _four(2, Silence("send", "10.0.0.1:38211", True), op=_REDUCE),
            "packets from h2 to h1 are lost inside all_reduce (10.0.0.1:38211); packets from h1 to h2 arrive",
        ),
    },
    silent_on={
        "all connections are answered": _four(1),
        "a server outside the job does not answer": _four(1, Silence("connect", "10.9.9.9:443")),
        "a port of the worker's own host does not answer": _four(
            1, Silence("connect", "10.0.0.1:38211")
        ),
    },
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
