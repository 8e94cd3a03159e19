"""One picture of a job, live or afterwards: all that a face shows. Nothing in it has to be computed further.

The published JSON Schema of the feed is generated from these types. Times of day are ISO 8601 in UTC.
"""

from __future__ import annotations

import msgspec

from allaboard.facts.finding import Finding
from allaboard.facts.snapshot.host_state import HostState, LinkState, LinkSummary, ServerState
from allaboard.facts.snapshot.rank_state import RankState
from allaboard.facts.snapshot.run_state import RunState

FEED_VERSION = 1
"""Version of the feed's format. It rises if a reader of the version before would misread it."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that is shown of a job at one time."""

    taken_at: str
    """Time of day."""
    run: RunState
    """The job as a whole."""
    ranks: tuple[RankState, ...] = ()
    """Its processes, in the order of their ranks."""
    hosts: tuple[HostState, ...] = ()
    """Its hosts, by name."""
    links: tuple[LinkState, ...] = ()
    """Links between hosts; those that do not work first."""
    links_working: LinkSummary | None = None
    """Further links, which all work; absent if all are in ``links``."""
    servers: tuple[ServerState, ...] = ()
    """Its parameter servers."""
    findings: tuple[Finding, ...] = ()
    """Findings, active ones first, the newest first among these; one is resolved if it has ``over``."""
    findings_left_out: int = 0
    """Findings that are not in this list, since they are too many."""
