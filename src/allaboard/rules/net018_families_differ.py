"""Gloo uses an IPv4 address on one host and an IPv6 address on another, and cannot connect the two.

## Why it matters
Gloo binds its data connections to the first address to which the host's own name resolves on that host, and
connects only addresses of one family. PyTorch and JAX fail with `ss1.ss_family == ss2.ss_family`, or as if a
peer had closed the connection. Each host alone looks fine.

## What to do
Make the hosts' own names resolve to the same family first: IPv6 enabled on all or on none (`sysctl
net.ipv6.conf.all.disable_ipv6`), the same lines in /etc/hosts, the same /etc/gai.conf. With PyTorch,
`GLOO_SOCKET_IFNAME` on every host takes the interface's IPv4 address, if it has one. TensorFlow uses the
addresses in TF_CONFIG and is not affected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from allaboard.analysis.failures.failure_causality import failures, too_early
from allaboard.analysis.network.address_families import Apart, address, apart, family, has_met
from allaboard.analysis.network.link_faults import four, heard_by_all, on_host
from allaboard.contracts import Rule
from allaboard.facts import Claim, Evidence, Exit, JobView, Member, Phase, Raised, Stage
from allaboard.facts.samples import job

MET = (
    "UNKNOWN: Gloo context initialization failed: [enforce fail at external/gloo/gloo/transport/tcp/"
    "device.cc:285] ss1.ss_family == ss2.ss_family. 10 vs 2"
)
"""The message that JAX 0.10 raises in this case."""


def check(view: JobView) -> Iterator[Claim]:
    met = [m for m in failures(view).began if has_met(view, m)]
    if met and too_early(view, met[0]):
        return
    found = apart(view.members if met else _called(view))
    if found is not None:
        told = (*found.odd, *found.usual)
        times = (m.raised.at if m.raised is not None else m.phase_since for m in told)
        yield _claim(found, max(times))


def _called(view: JobView) -> tuple[Member, ...]:
    """Return all members of a complete roll call, including those already released: among fewer members, the
    minority could be the wrong one."""
    for roll, _ in heard_by_all(view):
        if not roll.missing and all(_goes_by_name(m) and address(m) for m in roll.here):
            return roll.here
    return ()


def _goes_by_name(member: Member) -> bool:
    """Return True if gloo is certainly used after init. For JAX this is known only once gloo raises."""
    told = member.declared
    if told is None or told.framework != "torch" or told.cluster:
        return False
    return not told.backend or "gloo" in told.backend.lower()


def _claim(found: Apart, since: float) -> Claim:
    odd, usual = found.odd[0], found.usual[0]
    hosts, others = (_names(m.who.host for m in some) for some in (found.odd, found.usual))
    return Claim(
        summary=f"gloo cannot connect {hosts} to the other hosts: {hosts} would use {_offered(odd)}, "
        f"{others} {_offered(usual)}",
        who=tuple(m.who for m in found.odd),
        evidence=tuple(
            Evidence(f"{m.who.host}: {address(m)}", m.facts.get("data interface", ""))
            for m in (*found.odd[:SHOWN], *found.usual[:SHOWN])
        ),
        fix=f"on {odd.who.host}: getent ahosts {odd.who.host}; sysctl net.ipv6.conf.all.disable_ipv6; cat "
        f"/etc/gai.conf   # then compare with {usual.who.host}: the same family must come first on all; or, "
        "with PyTorch, set "
        "GLOO_SOCKET_IFNAME on every host",
        since=since,
    )


SHOWN = 4
"""Most hosts of each family that are named."""


def _offered(member: Member) -> str:
    return f"an {family(address(member))} address ({address(member)})"


def _names(hosts: Iterable[str]) -> str:
    known = list(hosts)
    more = f" and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
    return ", ".join(known[:SHOWN]) + more


def _on(rank: int, first: str, backend: str = "gloo", **changes: object) -> Member:
    facts = {"gloo address": first, "data interface": f"what h{rank} resolves to on itself"}
    member = on_host(rank, facts=facts, **changes)
    assert member.declared is not None
    told = msgspec.structs.replace(member.declared, backend=backend)
    return msgspec.structs.replace(member, declared=told)


def _view(*firsts: str, backend: str = "gloo", through: int = -1) -> JobView:
    """Return a view of hosts with these addresses; ``through`` is the rank that was released before the
    others."""
    gone = {"phase": Phase.JOINING}
    members = [
        _on(i, first, backend, **gone if i == through else {}) for i, first in enumerate(firsts)
    ]
    return msgspec.structs.replace(four(), members=tuple(members))


def _jax(*firsts: str, said: str = MET) -> JobView:
    """Return a view in which all ranks have raised this error in their first collective."""
    raised = Raised(type="JaxRuntimeError", message=said, at=95.0)
    left = {"phase": Phase.TRAINING, "raised": raised, "exit": Exit(at=95.5, code=1)}
    members = [_on(i, first, "", **left) for i, first in enumerate(firsts)]
    told = [msgspec.structs.replace(m.declared, framework="jax") for m in members if m.declared]
    both = zip(members, told, strict=True)
    return job(*(msgspec.structs.replace(m, declared=d) for m, d in both), joined=True, leads=True)


_SIX = ("fd77::1", "fd77::2", "fd77::3", "fd77::4")
RULE = Rule(
    stage=Stage.NETWORK,
    reads=JobView,
    check=check,
    fires_on={
        "IPv6 is off on one host": (
            _view("fd77::1", "fd77::2", "10.0.0.3", "fd77::4"),
            "gloo cannot connect h2 to the other hosts: h2 would use an IPv4 address (10.0.0.3), h0, h1, "
            "h3 an IPv6 address (fd77::1)",
        ),
        "the first host is the odd one": (
            _view("10.0.0.1", "fd77::2", "fd77::3", "fd77::4", backend="cpu:gloo,cuda:nccl"),
            "gloo cannot connect h0 to the other hosts: h0 would use an IPv4 address (10.0.0.1), h1, h2, "
            "h3 an IPv6 address (fd77::2)",
        ),
        "half of them": (
            _view("fd77::1", "10.0.0.2", "fd77::3", "10.0.0.4", backend=""),
            "gloo cannot connect h1, h3 to the other hosts: h1, h3 would use an IPv4 address (10.0.0.2), "
            "h0, h2 an IPv6 address (fd77::1)",
        ),
        "some are released already": (
            _view("fd77::1", "fd77::2", "10.0.0.3", "fd77::4", through=0),
            "gloo cannot connect h2 to the other hosts: h2 would use an IPv4 address (10.0.0.3), h0, h1, "
            "h3 an IPv6 address (fd77::1)",
        ),
        "JAX, after the failure": (
            _jax("fd77::1", "10.0.0.2", "fd77::3", "fd77::4"),
            "gloo cannot connect h1 to the other hosts: h1 would use an IPv4 address (10.0.0.2), h0, h2, "
            "h3 an IPv6 address (fd77::1)",
        ),
    },
    silent_on={
        "IPv6 everywhere": _view(*_SIX),
        "IPv4 everywhere": _view("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"),
        "NCCL chooses by itself": _view(
            "fd77::1", "10.0.0.2", "fd77::3", "fd77::4", backend="nccl"
        ),
        "the address of one host is unknown": _view("fd77::1", "", "fd77::3", "10.0.0.4"),
        "JAX that raised something else": _jax("fd77::1", "10.0.0.2", *_SIX[2:], said="XLA failed"),
    },
    since="0.1",
    drill=("net-families-differ", "net-families-differ-jax"),
)
