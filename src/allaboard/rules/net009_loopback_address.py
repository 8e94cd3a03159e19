"""A host is about to advertise its loopback address to the other hosts.

## Why it matters
Gloo binds its data connections to the address that the host's own name resolves to. Debian's installer writes
`127.0.1.1 NAME` into /etc/hosts. The other hosts then connect to 127.0.1.1, that is, to themselves: some are
refused at once, and the rest hang.

## What to do
Make the name resolve to the address that the others reach: change that line of /etc/hosts. Or set
`GLOO_SOCKET_IFNAME` to the interface (see `ip -br addr`) on every host.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.network.link_faults import (
    example_host_member,
    example_hosts_with,
    members_heard_by_all,
)
from allaboard.contracts import Rule
from allaboard.facts import Claim, Evidence, JobView, Member
from allaboard.facts.outcome import Retry


def check(view: JobView) -> Iterator[Claim]:
    for roll, member in members_heard_by_all(view):
        address = member.facts.get("data address", "")
        if not (address.startswith("127.") or address == "::1") or not _uses_own_name(member):
            continue
        if len({m.who.host for m in roll.present}) > 1:
            yield _claim(member, address)


def _uses_own_name(member: Member) -> bool:
    """Return True if the framework will use gloo, which binds to the address of the host's own name."""
    declaration = member.declared
    if declaration is None or declaration.cluster:
        return False
    if declaration.framework == "jax":  # on GPUs and TPUs other libraries connect the hosts
        return member.facts.get("variable JAX_PLATFORMS", "").lower().startswith("cpu")
    return not declaration.backend or "gloo" in declaration.backend.lower()


def _claim(member: Member, address: str) -> Claim:
    host = member.who.host
    return Claim(
        summary=f"{host} is about to advertise its loopback address {address} to the other hosts",
        who=(member.who,),
        evidence=(Evidence(address, member.facts.get("data interface", "")),),
        fix=f"on {host}: getent hosts {host}; ip -br addr   # give the name its real address in "
        "/etc/hosts, or set GLOO_SOCKET_IFNAME to the interface",
        since=member.phase_since,
    )


def _view(
    address: str, backend: str = "gloo", framework: str = "torch", **variables: str
) -> JobView:
    facts = {"data address": address, "data interface": "what h2 resolves to"}
    wrong = example_host_member(2, facts=facts | {f"variable {k}": v for k, v in variables.items()})
    assert wrong.declared is not None
    declaration = msgspec.structs.replace(wrong.declared, backend=backend, framework=framework)
    return example_hosts_with(msgspec.structs.replace(wrong, declared=declaration))


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "the host's name resolves to 127.0.1.1, as Debian's installer sets it": (
            _view("127.0.1.1"),
            "h2 is about to advertise its loopback address 127.0.1.1 to the other hosts",
        ),
        "the host's name resolves to the IPv6 loopback address": (
            _view("::1"),
            "h2 is about to advertise its loopback address ::1 to the other hosts",
        ),
        "JAX on CPUs, which uses gloo": (
            _view("127.0.1.1", "", "jax", JAX_PLATFORMS="cpu"),
            "h2 is about to advertise its loopback address 127.0.1.1 to the other hosts",
        ),
    },
    silent_on={
        "JAX, perhaps on GPUs, where it does not use gloo": _view("127.0.1.1", "", "jax"),
        "the host's name resolves to a real IPv4 address": _view("10.0.0.2"),
        "the host's name resolves to a real IPv6 address": _view("fd77::2"),
        "the backend is NCCL, which does not use the host's name": _view("127.0.1.1", "nccl"),
        "the backend for CUDA tensors is NCCL, which does not use the host's name": _view(
            "127.0.1.1", "cuda:nccl"
        ),
    },
    retry=Retry.NEVER,
    drill=("net-own-name-loopback",),
)
