"""What every drop-in does: the roll call, then the framework's own call, both within one time limit."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from allaboard.dropin.error import roll_call_error
from allaboard.dropin.framework_state import is_initialized
from allaboard.probe import attach, member

DEFAULT_TIMEOUT_S = 1800.0
"""The time limit if neither the caller nor the framework gives one: that of torch.distributed."""


def is_watched() -> bool:
    """Return True if this process is a member already, under `allaboard run` or ALLABOARD=1: then the hooks
    of the framework's own call do the roll call."""
    injected_member = sys.modules.get("_allaboard_probe.member")
    return any(
        m is not None and (m.here.box is not None or m.here.attach is not None)
        for m in (injected_member, member)
    )


def _lacks_port(address: str) -> bool:
    """Return True if an address has no port: nobody can meet there, and the framework says so at once."""
    scheme, _, location = address.partition("://")
    return (
        scheme == "tcp" and not location.partition("?")[0].rpartition(":")[2].strip("/").isdecimal()
    )


@contextmanager
def joining(
    declaration: dict[str, Any] | None, timeout: float, coordinator: str = ""
) -> Iterator[None]:
    """Hold the roll call before the framework's own call, which is made inside this context.

    ``timeout`` (s) bounds the roll call, and then the call. ``coordinator`` is where all meet, if that is
    not the framework's own address. If this process is in its job already, no roll call is held.

    Raises:
        RollCallError: the roll call failed; on every rank. If the framework's call itself does not return,
            which no Python can interrupt, the agent prints what it knows and ends the process.
    """
    meets_nobody = (
        declaration is None
        or declaration["world_size"] < 2
        or _lacks_port(declaration.get("place", ""))
    )
    if declaration is None or meets_nobody or is_watched() or is_initialized(declaration):
        yield
        return
    peer = attach.attach(declaration, timeout, watch=False, coordinator=coordinator)
    if peer is None:
        yield
        return
    member.here.raises = True
    try:
        try:
            member.arrive(declaration)
        except SystemExit:
            verdict = member.here.box.verdict() if member.here.box is not None else ""
            raise roll_call_error(peer.run, verdict) from None
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
