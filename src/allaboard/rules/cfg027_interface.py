"""GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME or TP_SOCKET_IFNAME names an interface this host lacks.

## Why it matters
Gloo fails with `Unable to find address for: NAME` on this host; NCCL says `Bootstrap : no socket interface
found`. Hosts of one cluster often name their interfaces differently (`eth0`, `ens5`, `enp3s0f0`), so one
image fails on some of them, and the others wait.

## What to do
Choose one of the interfaces listed. NCCL takes prefixes (`eth`, `ens`), exclusions (`^docker,lo`) and exact
names (`=eth0`); gloo takes exact names, separated by commas.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.configuration.spec import count_hosts, own_member
from allaboard.contracts import Rule
from allaboard.facts import Claim, ConfigFacts, Evidence, LocalHost, Stage, sample_config_facts


def check(facts: ConfigFacts) -> Iterator[Claim]:
    host = facts.host
    if host is None or not host.interfaces:
        return
    for name in ("GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
        value = facts.variables.get(name)
        if value is None or not value.text.strip():
            continue
        text = value.text.strip()
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


RULE = Rule(
    stage=Stage.CONFIG,
    reads=ConfigFacts,
    check=check,
    fires_on={
        "gloo": (
            _facts(GLOO_SOCKET_IFNAME="eth0"),
            "GLOO_SOCKET_IFNAME names 'eth0'; this host has no such interface",
        ),
        "NCCL": (
            _facts(NCCL_SOCKET_IFNAME="ib0"),
            "NCCL_SOCKET_IFNAME names 'ib0'; this host has no such interface",
        ),
    },
    silent_on={
        "a prefix, for NCCL": _facts(NCCL_SOCKET_IFNAME="ens"),
        "an exclusion": _facts(NCCL_SOCKET_IFNAME="^docker0,lo"),
        "it is there": _facts(GLOO_SOCKET_IFNAME="ens5"),
    },
    since="0.1",
    unstaged="read from configuration: the corpus in tests/corpus stages it",
)
