"""The families of the addresses on which gloo makes its connections, host by host."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import NamedTuple

from allaboard.facts import JobView, Member, Raised

_RAISED = re.compile(r"ss1\.ss_family == ss2\.ss_family")
"""What gloo says of it since 2.0, in PyTorch and in JAX; gloo/transport/tcp/device.cc."""


class Apart(NamedTuple):
    """A member each host: ``odd`` where the address is of the rarer family (of equally many: of another than
    the first member's), ``usual`` all others."""

    odd: tuple[Member, ...]
    usual: tuple[Member, ...]


def address(member: Member) -> str:
    """The one that gloo takes there; "" where that is not known."""
    return member.facts.get("gloo address", "")


def family(text: str) -> str:
    """In words."""
    return "IPv6" if ":" in text else "IPv4"


def apart(members: tuple[Member, ...]) -> Apart | None:
    """None where all are of one family, as far as is known."""
    hosts: dict[str, dict[str, Member]] = defaultdict(dict)
    for member in sorted(members, key=lambda m: m.who.rank):
        if address(member):
            hosts[family(address(member))].setdefault(member.who.host, member)
    if len(hosts) < 2:
        return None
    # The first member's family comes first, and stays so among equals.
    usual, odd = sorted(hosts.values(), key=len, reverse=True)
    return Apart(tuple(odd.values()), tuple(usual.values()))


def says_so(error: Raised | None) -> bool:
    """Whether gloo itself met two families."""
    return error is not None and _RAISED.search(error.message) is not None


def has_met(view: JobView, member: Member) -> bool:
    """Whether gloo met them in this member, and it is known on which hosts."""
    return says_so(member.raised) and apart(view.members) is not None
