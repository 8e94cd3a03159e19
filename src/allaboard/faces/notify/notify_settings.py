"""Who is told of the faults of a run, and how."""

from __future__ import annotations

import msgspec

LAST_WORDS_S = 15.0
"""Seconds in which the messages of the end have to be sent; the end of `run` waits for them."""


class NotifySettings(msgspec.Struct, frozen=True, kw_only=True):
    """Who is told, and how."""

    run_dir: str = ""
    """The run folder."""
    urls: tuple[str, ...] = ()
    """URLs of apprise."""
    heartbeat_url: str = ""
    """URL that is called every minute; "" for none."""
    on_finding: str = ""
    """Command for each finding; "" for none."""
    only_if_taken_over: bool = False
    """True on another host than the first: it is silent unless it leads after the first one is lost."""
