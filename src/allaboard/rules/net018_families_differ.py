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

from allaboard.analysis.failures.failure_causality import must_delay_report, order_failures
from allaboard.analysis.network.address_families import (
    FamilyConflict,
    address_family,
    find_family_conflict,
    gloo_address,
    has_met_family_conflict,
)
from allaboard.analysis.network.link_faults import (
    example_four_hosts,
    example_host_member,
    members_heard_by_all,
)
from allaboard.contracts import Rule
from allaboard.facts import Claim, Evidence, Exit, JobView, Member, Phase, Raised
from allaboard.facts.outcome import Retry
from allaboard.facts.samples import sample_job

JAX_ERROR = (
    "UNKNOWN: Gloo context initialization failed: [enforce fail at external/gloo/gloo/transport/tcp/"
    "device.cc:285] ss1.ss_family == ss2.ss_family. 10 vs 2"
)
"""The message that JAX 0.10 raises in this case."""


def check(view: JobView) -> Iterator[Claim]:
    failed = [m for m in order_failures(view).root_failures if has_met_family_conflict(view, m)]
    if failed and must_delay_report(view, failed[0]):
        return
    difference = find_family_conflict(view.members if failed else _complete_roll_call(view))
    if difference is not None:
        members = (*difference.outliers, *difference.majority)
        times = (m.raised.raised_at if m.raised is not None else m.phase_since for m in members)
        yield _claim(difference, max(times))


def _complete_roll_call(view: JobView) -> tuple[Member, ...]:
    """Return all members of a complete roll call, including those already released: among fewer members, the
    minority could be the wrong one."""
    for roll, _ in members_heard_by_all(view):
        if not roll.missing and all(_goes_by_name(m) and gloo_address(m) for m in roll.present):
            return roll.present
    return ()


def _goes_by_name(member: Member) -> bool:
    """Return True if gloo is certainly used after init. For JAX this is known only once gloo raises."""
    declaration = member.declared
    if declaration is None or declaration.framework != "torch" or declaration.cluster:
        return False
    return not declaration.backend or "gloo" in declaration.backend.lower()


def _claim(difference: FamilyConflict, since: float) -> Claim:
    minority, majority = difference.outliers[0], difference.majority[0]
    hosts, majority_hosts = (
        _names(m.who.host for m in members)
        for members in (difference.outliers, difference.majority)
    )
    return Claim(
        summary=f"gloo cannot connect {hosts} to the other hosts: {hosts} would use "
        f"{_describe_address(minority)}, {majority_hosts} {_describe_address(majority)}",
        who=tuple(m.who for m in difference.outliers),
        evidence=tuple(
            Evidence(f"{m.who.host}: {gloo_address(m)}", m.facts.get("data interface", ""))
            for m in (
                *difference.outliers[:MAX_SHOWN_HOSTS],
                *difference.majority[:MAX_SHOWN_HOSTS],
            )
        ),
        fix=f"on {minority.who.host}: getent ahosts {minority.who.host}; sysctl "
        f"net.ipv6.conf.all.disable_ipv6; cat /etc/gai.conf   # then compare with {majority.who.host}: the "
        "same family must come first on all; or, with PyTorch, set GLOO_SOCKET_IFNAME on every host",
        since=since,
    )


MAX_SHOWN_HOSTS = 4
"""Most hosts of each family that are named."""


def _describe_address(member: Member) -> str:
    return f"an {address_family(gloo_address(member))} address ({gloo_address(member)})"


def _names(hosts: Iterable[str]) -> str:
    listed = list(hosts)
    more = f" and {len(listed) - MAX_SHOWN_HOSTS} more" if len(listed) > MAX_SHOWN_HOSTS else ""
    return ", ".join(listed[:MAX_SHOWN_HOSTS]) + more


def _on(rank: int, address: str, backend: str = "gloo", **changes: object) -> Member:
    facts = {"gloo address": address, "data interface": f"what h{rank} resolves to on itself"}
    member = example_host_member(rank, facts=facts, **changes)
    assert member.declared is not None
    declaration = msgspec.structs.replace(member.declared, backend=backend)
    return msgspec.structs.replace(member, declared=declaration)


def _view(*firsts: str, backend: str = "gloo", through: int = -1) -> JobView:
    """Return a view of hosts with these addresses; ``through`` is the rank that was released before the
    others."""
    released = {"phase": Phase.JOINING}
    members = [
        _on(i, address, backend, **released if i == through else {})
        for i, address in enumerate(firsts)
    ]
    return msgspec.structs.replace(example_four_hosts(), members=tuple(members))


def _jax(*firsts: str, error: str = JAX_ERROR) -> JobView:
    """Return a view in which all ranks have raised this error in their first collective."""
    raised = Raised(type="JaxRuntimeError", message=error, raised_at=95.0)
    failed = {"phase": Phase.TRAINING, "raised": raised, "exit": Exit(ended_at=95.5, code=1)}
    members = [_on(i, address, "", **failed) for i, address in enumerate(firsts)]
    declarations = [
        msgspec.structs.replace(m.declared, framework="jax") for m in members if m.declared
    ]
    pairs = zip(members, declarations, strict=True)
    return sample_job(
        *(msgspec.structs.replace(m, declared=d) for m, d in pairs), joined=True, leads=True
    )


_SIX = ("fd77::1", "fd77::2", "fd77::3", "fd77::4")
RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "IPv6 is off on one of four hosts": (
            _view("fd77::1", "fd77::2", "10.0.0.3", "fd77::4"),
            "gloo cannot connect h2 to the other hosts: h2 would use an IPv4 address (10.0.0.3), h0, h1, "
            "h3 an IPv6 address (fd77::1)",
        ),
        "only the first of four hosts uses IPv4": (
            _view("10.0.0.1", "fd77::2", "fd77::3", "fd77::4", backend="cpu:gloo,cuda:nccl"),
            "gloo cannot connect h0 to the other hosts: h0 would use an IPv4 address (10.0.0.1), h1, h2, "
            "h3 an IPv6 address (fd77::2)",
        ),
        "two of four hosts use IPv4": (
            _view("fd77::1", "10.0.0.2", "fd77::3", "10.0.0.4", backend=""),
            "gloo cannot connect h1, h3 to the other hosts: h1, h3 would use an IPv4 address (10.0.0.2), "
            "h0, h2 an IPv6 address (fd77::1)",
        ),
        "one host uses IPv4, and rank 0 has already been released": (
            _view("fd77::1", "fd77::2", "10.0.0.3", "fd77::4", through=0),
            "gloo cannot connect h2 to the other hosts: h2 would use an IPv4 address (10.0.0.3), h0, h1, "
            "h3 an IPv6 address (fd77::1)",
        ),
        "JAX, after gloo has failed": (
            _jax("fd77::1", "10.0.0.2", "fd77::3", "fd77::4"),
            "gloo cannot connect h1 to the other hosts: h1 would use an IPv4 address (10.0.0.2), h0, h2, "
            "h3 an IPv6 address (fd77::1)",
        ),
    },
    silent_on={
        "all hosts use IPv6": _view(*_SIX),
        "all hosts use IPv4": _view("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"),
        "the backend is NCCL, which chooses its addresses itself": _view(
            "fd77::1", "10.0.0.2", "fd77::3", "fd77::4", backend="nccl"
        ),
        "the address of one host is not known": _view("fd77::1", "", "fd77::3", "10.0.0.4"),
        "JAX, after it has failed with another error": _jax(
            "fd77::1", "10.0.0.2", *_SIX[2:], error="XLA failed"
        ),
    },
    retry=Retry.NEVER,
    drill=("net-families-differ", "net-families-differ-jax"),
)
