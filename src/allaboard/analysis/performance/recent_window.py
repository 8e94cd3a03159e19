"""The view of a job over its last four seconds: a large change shows there before it moves a mean of ten.

Rules that watch rates look at two windows: the long one tells small changes from chance, and the short one
has a limit that chance does not reach.
"""

from __future__ import annotations

import msgspec

from allaboard.facts import JobView
from allaboard.facts.memo import cached_per_view

RECENT_WINDOW_S = 4.0
"""Seconds that recent paces and loads look back on."""
MIN_RECENT_SPAN_S = 2.9
"""Seconds of the window that must have been measured: four samples, one each second."""


@cached_per_view
def recent_view(view: JobView) -> JobView:
    """Return the view with the recent ``load`` and ``pace`` of each member, and the recent uses."""
    members = tuple(
        msgspec.structs.replace(m, load=m.recent_load, pace=m.recent_pace) for m in view.members
    )
    return msgspec.structs.replace(
        view, members=members, uses=tuple(use.recent_use for use in view.uses)
    )
