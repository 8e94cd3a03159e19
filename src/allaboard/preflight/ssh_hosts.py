"""The list of hosts of `preflight --hosts`. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from allaboard.options.usage_error import UsageError


def parse_hosts(text: str) -> list[str]:
    """Return the hosts in their order. Raises UsageError for fewer than two, a host that is named twice,
    and what is no host."""
    hosts = [h.strip() for h in text.split(",") if h.strip()]
    if len(hosts) < 2:
        raise UsageError("--hosts expects two hosts or more, e.g. --hosts node0,node1")
    names = [host_name(h).lower() for h in hosts]
    repeated = {h for h, n in zip(hosts, names, strict=True) if names.count(n) > 1}
    if repeated:
        raise UsageError(
            f"--hosts names {' and '.join(sorted(repeated))}{'' if len(repeated) > 1 else ' twice'}: that is "
            "one host, and one task per host is started"
        )
    invalid = [h for h in hosts if h.startswith("-")]
    if invalid:
        raise UsageError(f"--hosts {invalid[0]}: that is not a host")
    return hosts


def host_name(host: str) -> str:
    """Return the host without the user before it."""
    return host.rpartition("@")[2]


def same_host_message(identities: Mapping[str, str], hosts: Sequence[str]) -> str:
    """Return the message that two names lead to one host; "" if none do. ``identities`` are what each
    reached host said of itself."""
    hosts_by_identity: dict[str, list[str]] = {}
    for host in hosts:
        if identities.get(host):
            hosts_by_identity.setdefault(identities[host], []).append(host)
    same_hosts = next(
        (named_hosts for named_hosts in hosts_by_identity.values() if len(named_hosts) > 1), None
    )
    if same_hosts is None:
        return ""
    return f"--hosts: {' and '.join(same_hosts)} are one host, and one task per host is started"
