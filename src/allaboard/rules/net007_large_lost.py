"""Small messages arrive between two hosts, but large ones are lost.

## Why it matters
Everything looks fine until the first tensor. Connections are made, handshakes succeed, and then the first
large message never arrives: packets above a certain size are dropped on the way, and the ICMP message that
would report it is filtered too (a path MTU black hole, RFC 2923). All ranks hang in their first collective.

A trial that fails is repeated; the finding is `certain` if the second trial fails too.

## What to do
Find the size that passes: `ping -M do -s 1472 HOST` (1472 + 28 = 1500). Set the interface's MTU to that on
every host (`ip link set dev IF mtu N`), or let ICMP "fragmentation needed" through. Tunnels, VPNs and
container networks are the usual cause.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from allaboard.analysis.network.link_faults import (
    example_failed_link,
    example_four_hosts,
    find_link_faults,
    members_on_hosts,
)
from allaboard.contracts import Rule
from allaboard.facts import Address, Answer, Certainty, Claim, Evidence, JobView


def check(view: JobView) -> Iterator[Claim]:
    for fault in find_link_faults(view.links, (Answer.CUT,)):
        first_link = fault.links[0]
        where = (
            f"to {fault.host}" if fault.host else f"from {first_link.source} to {first_link.target}"
        )
        where = f"from {fault.host}" if fault.only_outward_fails else where
        groups = " | ".join(", ".join(p[:4]) for p in fault.partitions)
        where = f"between {groups}" if groups else where
        host = Address.from_endpoint(first_link.address).host
        yield Claim(
            summary=f"small messages {where} arrive, but large ones are lost",
            who=members_on_hosts(
                view, *((fault.host,) if fault.host else (first_link.source, first_link.target))
            ),
            evidence=tuple(
                Evidence(
                    f"{k.source} to {k.target}: 32 bytes in {k.seconds * 1e3:.1f} ms, {k.description}",
                    "link trial",
                )
                for k in fault.links[:4]
            ),
            fix=f"on {first_link.source}: ping -M do -c1 -s 1472 {host}   # reduce the size until it passes; "
            "then set that MTU on every host",
            certainty=Certainty.CERTAIN if fault.is_lasting else Certainty.LIKELY,
        )


_CUT: dict[str, Any] = {"said": "65536 bytes took more than 3 s", "seconds": 0.0004}
RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "one host behind a tunnel that loses large packets": (
            example_four_hosts(*(example_failed_link(i, 2, Answer.CUT, **_CUT) for i in (0, 1, 3))),
            "small messages to h2 arrive, but large ones are lost",
        ),
        "one link that loses large packets": (
            example_four_hosts(example_failed_link(1, 3, Answer.CUT, **_CUT)),
            "small messages from h1 to h3 arrive, but large ones are lost",
        ),
    },
    silent_on={
        "packets of all sizes arrive": example_four_hosts(),
        "no packet arrives at all, which NET006 reports": example_four_hosts(
            example_failed_link(1, 3, Answer.SILENT)
        ),
    },
    drill=("net-mtu",),
)
