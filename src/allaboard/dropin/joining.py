"""The way of every drop-in: roll call, then the framework's own call, both under one bound."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from allaboard.dropin.error import failed
from allaboard.dropin.standing import stands
from allaboard.probe import attach, member

UNBOUNDED = 1800.0
"""Seconds where neither the caller nor the framework gives a timeout: that of torch.distributed."""


def watched() -> bool:
    """Whether this process is a member already, under `allaboard run` or ALLABOARD=1: the hooks of the
    framework's own call do the roll call then."""
    outer = sys.modules.get("_allaboard_probe.member")
    return any(
        m is not None and (m.here.box is not None or m.here.attach is not None)
        for m in (outer, member)
    )


def _portless(place: str) -> bool:
    """Whether an address lacks its port: nobody can meet there, and the framework says so at once."""
    scheme, _, rest = place.partition("://")
    return scheme == "tcp" and not rest.partition("?")[0].rpartition(":")[2].strip("/").isdigit()


@contextmanager
def joining(
    declared: dict[str, Any] | None, timeout: float, coordinator: str = ""
) -> Iterator[None]:
    """Around the framework's own call. ``timeout`` (s) bounds the roll call, and then the call;
    ``coordinator`` is where all meet, where that is not the framework's own place.

    Raises RollCallError, on every rank, where the roll call fails. Where the framework's call itself
    does not come back, which no Python can interrupt, the agent prints what it knows and ends the process.
    Nobody is called where this process is in its job already: the framework's own call comes at once.
    """
    alone = declared is None or declared["world_size"] < 2 or _portless(declared.get("place", ""))
    if declared is None or alone or watched() or stands(declared):
        yield
        return
    peer = attach.attach(declared, timeout, watch=False, coordinator=coordinator)
    if peer is None:
        yield
        return
    member.here.raises = True
    try:
        try:
            member.arrive(declared)
        except SystemExit:
            said = member.here.box.verdict() if member.here.box is not None else ""
            raise failed(peer.run, said) from None
        finally:
            member.here.raises = False
        succeeded = False
        try:
            yield
            succeeded = True
        finally:
            member.joined(succeeded)
    finally:
        peer.release()
