"""Groups of one name and other members are not one group. Pure.

PyTorch 2.4 to 2.7 counts the names of groups that are split from another on each rank by itself, so that the
halves of a mesh have one name in the dumps of all.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from allaboard.facts import Testimony
from allaboard.facts.rank_sets import format_ranks


def told_apart(known: Mapping[str, tuple[int, ...]], said: Testimony) -> Testimony:
    """The testimony, with the members in the names of those groups that are ``known`` with others."""
    names = {
        name: f"{name} of ranks {format_ranks(sorted(members))}"
        for name, members in said.groups.items()
        if members and known.get(name) and set(known[name]) != set(members)
    }
    if not names:
        return said
    return msgspec.structs.replace(
        said,
        groups={names.get(n, n): m for n, m in said.groups.items()},
        recorded=tuple(
            msgspec.structs.replace(r, group=names.get(r.group, r.group)) for r in said.recorded
        ),
    )
