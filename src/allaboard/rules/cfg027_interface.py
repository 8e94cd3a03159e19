"""GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME or TP_SOCKET_IFNAME names an interface this host lacks.

## Why it matters
Gloo fails with `Unable to find address for: NAME` on this host; NCCL says `Bootstrap : no socket interface
found`. Hosts of one cluster often name their interfaces differently (`eth0`, `ens5`, `enp3s0f0`), so one
image fails on some of them, and the others wait.

## What to do
Choose one of the interfaces listed. NCCL takes prefixes (`eth`, `ens`), exclusions (`^docker,lo`) and exact
names (`=eth0`); gloo takes exact names alone, separated by commas, and no `^` or `=`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from allaboard.configuration.spec import count_hosts, own_member
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ConfigFacts, Evidence, LocalHost, Value
from allaboard.facts.address import is_this_host_alone, parse_address
from allaboard.facts.configuration.config_facts import sample_config_facts

_VARIABLES = ("GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")


def check(facts: ConfigFacts) -> Iterator[Claim]:
    host = facts.host
    yield from _foreign_notation(facts)
    if host is None or not host.interfaces:
        yield from _loopback_interfaces(facts)
        return
    for name in _VARIABLES:
        value = facts.variables.get(name)
        if value is None or not value.text.strip():
            continue
        text = value.text.strip()
        if _is_foreign_notation(name, text):
            continue
        missing = (
            _missing_for_nccl(text, host)
            if name.startswith("NCCL")
            else _missing_for_gloo(text, host)
        )
        loopback = text == "lo" and count_hosts(facts.spec) > 1
        if not missing and not loopback:
            continue
        usable = [i for i in host.interfaces if i != "lo"] or list(host.interfaces)
        wrong_value = "lo, which other hosts cannot reach" if loopback else f"{missing!r}"
        yield Claim(
            summary=f"{name} names {wrong_value}"
            + ("" if loopback else "; this host has no such interface"),
            who=own_member(facts.spec),
            evidence=(
                value.evidence,
                Evidence(", ".join(host.interfaces), "interfaces of this host"),
            ),
            fix=f"export {name}={usable[0]}",
        )


def _foreign_notation(facts: ConfigFacts) -> Iterator[Claim]:
    """Yield a claim for each list in NCCL's notation that is given to gloo, on whatever host it runs."""
    for name in ("GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME"):
        value = facts.variables.get(name)
        if value is None or not _is_foreign_notation(name, value.text.strip()):
            continue
        yield Claim(
            summary=f"{name} is {value.text.strip()!r}: gloo takes names of interfaces alone, while ^ and = "
            "are NCCL's notation",
            who=own_member(facts.spec),
            evidence=(value.evidence,),
            fix=f"export {name}=$(ip -4 route get MASTER_IP | grep -oP 'dev \\K\\S+')   # one name, on each "
            "host its own; NCCL_SOCKET_IFNAME may keep its list",
            where=value.origin.editor_place,
        )


def _loopback_interfaces(facts: ConfigFacts) -> Iterator[Claim]:
    """Yield a claim for each variable that keeps a job of several hosts on the loopback interface."""
    count = count_hosts(facts.spec)
    meeting = facts.spec.values.get("master_addr") or facts.spec.values.get("rdzv_endpoint")
    is_local = meeting is not None and is_this_host_alone(parse_address(meeting.text).host)
    if count < 2 or facts.one_host or is_local:
        return
    for name in _VARIABLES:
        value = facts.variables.get(name)
        if value is None or value.text.strip() not in ("lo", "=lo", "lo0", "=lo0"):
            continue
        yield Claim(
            summary=f"{name} is {value.text.strip()}, the loopback interface, which cannot join {count} "
            "hosts",
            who=own_member(facts.spec),
            evidence=(value.evidence, *_host_count_evidence(facts)),
            fix=_reachable_interface(name, meeting),
            certainty=Certainty.LIKELY,
            where=value.origin.editor_place,
        )


def _reachable_interface(name: str, meeting: Value | None) -> str:
    """Return the setting that is right on every host, whatever its interfaces are called."""
    if name.startswith("NCCL"):
        return f"export {name}=^lo,docker"
    address = parse_address(meeting.text).host if meeting is not None else ""
    return f"export {name}=$(ip -4 route get {shlex.quote(address or 'MASTER_IP')} | grep -oP 'dev \\K\\S+')"


def _host_count_evidence(facts: ConfigFacts) -> tuple[Evidence, ...]:
    nodes = facts.spec.values.get("nnodes")
    return (nodes.evidence,) if nodes is not None else ()


def _is_foreign_notation(name: str, text: str) -> bool:
    return not name.startswith("NCCL") and text.startswith(("^", "="))


def _missing_for_gloo(text: str, host: LocalHost) -> str:
    names = [n.strip() for n in text.split(",")]
    return next((n for n in names if n and n not in host.interfaces), "")


def _missing_for_nccl(text: str, host: LocalHost) -> str:
    if text.startswith("^"):
        return ""
    exact = text.startswith("=")
    names = [w.partition(":")[0] for w in text.lstrip("=").split(",") if w]
    for name in names:
        if any(i == name if exact else i.startswith(name) for i in host.interfaces):
            return ""
    return text


def _facts(**variables: str) -> ConfigFacts:
    host = LocalHost(name="n", interfaces=("ens5", "lo"))
    return sample_config_facts(rank="0", variables=variables, host=host)


def _script(nodes: str, address: str) -> ConfigFacts:
    variables = {"NCCL_SOCKET_IFNAME": "lo"}
    return sample_config_facts("shell", variables=variables, nnodes=nodes, master_addr=address)


RULE = Rule(
    reads=ConfigFacts,
    check=check,
    fires_on={
        "GLOO_SOCKET_IFNAME names an interface that the host lacks": (
            _facts(GLOO_SOCKET_IFNAME="eth0"),
            "GLOO_SOCKET_IFNAME names 'eth0'; this host has no such interface",
        ),
        "GLOO_SOCKET_IFNAME is written in NCCL's notation for exclusions": (
            _facts(GLOO_SOCKET_IFNAME="^docker0,lo"),
            "GLOO_SOCKET_IFNAME is '^docker0,lo': gloo takes names of interfaces alone, while ^ and = are "
            "NCCL's notation",
        ),
        "NCCL_SOCKET_IFNAME is `lo` in a job on two nodes": (
            _script("2", "10.0.0.4"),
            "NCCL_SOCKET_IFNAME is lo, the loopback interface, which cannot join 2 hosts",
        ),
        "NCCL_SOCKET_IFNAME names an interface that the host lacks": (
            _facts(NCCL_SOCKET_IFNAME="ib0"),
            "NCCL_SOCKET_IFNAME names 'ib0'; this host has no such interface",
        ),
    },
    silent_on={
        "NCCL_SOCKET_IFNAME is `lo` in a job on one node": _script("1", "10.0.0.4"),
        "NCCL_SOCKET_IFNAME is `lo`, and the ranks meet at 127.0.0.1": _script("2", "127.0.0.1"),
        "NCCL_SOCKET_IFNAME is the prefix of an interface's name": _facts(NCCL_SOCKET_IFNAME="ens"),
        "NCCL_SOCKET_IFNAME excludes interfaces with `^`": _facts(NCCL_SOCKET_IFNAME="^docker0,lo"),
        "GLOO_SOCKET_IFNAME names an interface that the host has": _facts(
            GLOO_SOCKET_IFNAME="ens5"
        ),
    },
)
