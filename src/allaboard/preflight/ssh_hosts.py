"""The hosts of `preflight --hosts`: what is no list of hosts is refused. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from allaboard.options.usage_error import UsageError


def hosts_of(text: str) -> list[str]:
    """The hosts in their order. Raises Refused for fewer than two, one named twice, and what is no host."""
    hosts = [h.strip() for h in text.split(",") if h.strip()]
    if len(hosts) < 2:
        raise UsageError("--hosts wants two or more, e.g. --hosts node0,node1")
    names = [name(h).lower() for h in hosts]
    twice = {h for h, n in zip(hosts, names, strict=True) if names.count(n) > 1}
    if twice:
        raise UsageError(
            f"--hosts names {' and '.join(sorted(twice))}{'' if len(twice) > 1 else ' twice'}: one host; "
            "one task a host is started"
        )
    wrong = [h for h in hosts if h.startswith("-")]
    if wrong:
        raise UsageError(f"--hosts {wrong[0]}: that is no host")
    return hosts


def name(host: str) -> str:
    """Without the user."""
    return host.rpartition("@")[2]


def one_host(said: Mapping[str, str], hosts: Sequence[str]) -> str:
    """What there is to say where two names lead to one host; "" where none do. ``said`` is what each told
    of itself."""
    by: dict[str, list[str]] = {}
    for host in hosts:
        if said.get(host):
            by.setdefault(said[host], []).append(host)
    found = next((same for same in by.values() if len(same) > 1), None)
    if found is None:
        return ""
    return f"--hosts: {' and '.join(found)} are one host; one task a host is started"
