"""Process groups that share a name but have other members are not one group. Pure.

PyTorch 2.4 to 2.7 counts the names of groups that are split from another on each rank by itself, so that the
halves of a mesh have the same name in all dumps.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from allaboard.facts import Testimony
from allaboard.facts.rank_sets import format_ranks


def disambiguate_groups(
    known_groups: Mapping[str, tuple[int, ...]], testimony: Testimony
) -> Testimony:
    """Return the testimony, with the members added to the names of groups that ``known_groups`` has with
    other members."""
    names = {
        name: f"{name} of ranks {format_ranks(sorted(members))}"
        for name, members in testimony.groups.items()
        if members and known_groups.get(name) and set(known_groups[name]) != set(members)
    }
    if not names:
        return testimony
    return msgspec.structs.replace(
        testimony,
        groups={names.get(n, n): m for n, m in testimony.groups.items()},
        recorded=tuple(
            msgspec.structs.replace(r, group=names.get(r.group, r.group))
            for r in testimony.recorded
        ),
    )
