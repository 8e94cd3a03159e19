"""A job as its last four seconds show it: what has changed much is seen there before it moves a mean of ten.

Rules that watch rates look twice: at the seconds that tell a little from chance, and at these, with a limit
that chance does not reach.
"""

from __future__ import annotations

import msgspec

from allaboard.facts import JobView
from allaboard.facts.memo import cached_per_view

RECENT = 4.0
"""Seconds that recent paces and loads look back on, ..."""
SPAN = 2.9
"""... and those that must have been measured: four looks, one each second."""


@cached_per_view
def lately(view: JobView) -> JobView:
    """``view``, where each member's ``load`` and ``pace`` and each use are their recent ones."""
    members = tuple(
        msgspec.structs.replace(m, load=m.recent_load, pace=m.recent_pace) for m in view.members
    )
    return msgspec.structs.replace(
        view, members=members, uses=tuple(use.lately for use in view.uses)
    )
