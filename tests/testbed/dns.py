"""What a host's /etc says about names: files alone, so that no lookup waits for a name server."""

from __future__ import annotations

from collections.abc import Mapping

NSSWITCH = "".join(
    f"{database}: files\n"
    for database in ("passwd", "group", "shadow", "hosts", "networks", "services", "protocols")
)


def hosts_file(
    addresses: Mapping[str, str], changes: Mapping[str, str | None] | None = None
) -> str:
    """The text of /etc/hosts: a line each name; ``changes`` map a name elsewhere or (None) remove it."""
    known: dict[str, str | None] = {"localhost": "127.0.0.1", **addresses, **(changes or {})}
    lines = [f"{address}\t{name}\n" for name, address in known.items() if address is not None]
    return "".join(lines) + "::1\tip6-localhost ip6-loopback\n"
