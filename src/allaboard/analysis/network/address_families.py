"""Families (IPv4 or IPv6) of the addresses on which gloo makes its connections, host by host."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import NamedTuple

from allaboard.facts import JobView, Member, Raised

_FAMILY_ERROR = re.compile(r"ss1\.ss_family == ss2\.ss_family")
"""Error of gloo in PyTorch (since 2.0) and in JAX, from gloo/transport/tcp/device.cc."""


class FamilyConflict(NamedTuple):
    """Hosts whose addresses are of different families, one member per host."""

    outliers: tuple[Member, ...]
    """Members of the rarer family; if both are equally frequent, of the one that rank 0's is not."""
    majority: tuple[Member, ...]
    """All other members."""


def gloo_address(member: Member) -> str:
    """Return the address that gloo uses on the member's host; "" if it is not known."""
    return member.facts.get("gloo address", "")


def address_family(text: str) -> str:
    """Return "IPv6" or "IPv4"."""
    return "IPv6" if ":" in text else "IPv4"


def find_family_conflict(members: tuple[Member, ...]) -> FamilyConflict | None:
    """Return the hosts whose families differ; None if all known addresses are of one family."""
    hosts_by_family: dict[str, dict[str, Member]] = defaultdict(dict)
    # In the order of ranks, so that the answer is the same on every host.
    for member in sorted(members, key=lambda m: m.who.rank):
        if gloo_address(member):
            hosts_by_family[address_family(gloo_address(member))].setdefault(
                member.who.host, member
            )
    if len(hosts_by_family) < 2:
        return None
    # The first member's family comes first, and stays so among equals.
    majority, outliers = sorted(hosts_by_family.values(), key=len, reverse=True)
    return FamilyConflict(tuple(outliers.values()), tuple(majority.values()))


def is_family_conflict_error(error: Raised | None) -> bool:
    """Return True if gloo itself reports two families."""
    return error is not None and _FAMILY_ERROR.search(error.message) is not None


def has_met_family_conflict(view: JobView, member: Member) -> bool:
    """Return True if gloo reports two families in this member, and it is known on which hosts they are."""
    return (
        is_family_conflict_error(member.raised) and find_family_conflict(view.members) is not None
    )
