"""A network interface is chosen by name, but this host has no interface of that name.

## Why it matters
The same variable is set on all hosts, but on this one the interface has another name. Gloo then fails there
with `Unable to find address for interface`, NCCL with `no socket interface found`, and the others wait for
it.

## What to do
List the interfaces of that host (`ip -br addr`), and set the variable there to the interface that the others
reach. For NCCL, a prefix (`NCCL_SOCKET_IFNAME=eth`) matches several names.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.network.link_faults import (
    example_host_member,
    example_hosts_with,
    members_heard_by_all,
)
from allaboard.contracts import Rule
from allaboard.facts import Claim, Evidence, JobView
from allaboard.facts.outcome import Retry


def check(view: JobView) -> Iterator[Claim]:
    for _, member in members_heard_by_all(view):
        origin = member.facts.get("data interface", "")
        if origin.startswith("GLOO_SOCKET_IFNAME=") and not member.facts.get("data address"):
            have, host = member.facts.get("interfaces", ""), member.who.host
            yield Claim(
                summary=f"{host} has no interface {origin.partition('=')[2]} with an address",
                who=(member.who,),
                evidence=(
                    Evidence(origin, "environment"),
                    Evidence(have, "interfaces of this host"),
                ),
                fix=f"on {host}: ip -br addr   # then set GLOO_SOCKET_IFNAME to one of them",
                since=member.phase_since,
            )


def _view(address: str) -> JobView:
    facts = {
        "data address": address,
        "data interface": "GLOO_SOCKET_IFNAME=ib7",
        "interfaces": "lo, eth0",
    }
    return example_hosts_with(example_host_member(2, facts=facts))


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "GLOO_SOCKET_IFNAME names an interface that this host does not have": (
            _view(""),
            "h2 has no interface ib7 with an address",
        )
    },
    silent_on={
        "the interface exists, and has an IPv4 address": _view("10.1.0.2"),
        "the interface exists, and has an IPv6 address only": _view("fd77::2"),
    },
    retry=Retry.NEVER,
    drill=("net-wrong-interface", "net-interface-in-script"),
)
