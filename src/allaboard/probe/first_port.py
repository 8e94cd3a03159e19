"""Waits until the first member listens, so that the framework's own client need not be refused.

All members are let through at one moment, and rank 0 has a server to start before the others can be
answered. A client that is refused waits longer than that before it tries again: 1 s in gRPC, which JAX
and TensorFlow use (its doc/connection-backoff.md), and up to 1 s in PyTorch's TCPStore. Here it is tried
every ``POLL`` seconds, with a connection that says nothing and is closed at once.
"""

from __future__ import annotations

import select
import socket
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

POLL = 0.01
LONGEST = 1.0
"""Seconds in all. After that, and after any answer but a refusal, the framework meets what there is."""


def of(declared: dict[str, Any]) -> tuple[str, int] | None:
    """Where the first member will listen, by what this one was told; None for the first itself, and where
    nobody waits for one address."""
    if not declared.get("rank"):
        return None
    place = str(declared.get("place") or "")
    if declared.get("call") == "MultiWorkerMirroredStrategy":
        cluster = declared.get("cluster") or {}
        place = "tcp://%s" % (cluster.get("chief:0") or cluster.get("worker:0"))
    scheme, _, rest = place.partition("://")
    host, _, port = rest.partition("/")[0].rpartition(":")
    if scheme != "tcp" or not host or not port.isdigit() or int(port) > 65535:
        return None
    return host.strip("[]"), int(port)


def wait(declared: dict[str, Any], now: Callable[[], float] = time.monotonic) -> None:
    """Returns once it listens, or when there is nothing more to wait for; never raises."""
    try:
        address = of(declared)
        until = now() + LONGEST
        while address is not None and _refused(address, until - now()) and now() < until:
            select.select([], [], [], POLL)
    except Exception:
        pass  # a name that is not found, an address that is none: the framework's to tell


def _refused(address: tuple[str, int], seconds: float) -> bool:
    """Raises OSError where it is neither that nor an answer in time."""
    try:
        socket.create_connection(address, max(POLL, seconds)).close()
    except ConnectionRefusedError:
        return True
    return False
