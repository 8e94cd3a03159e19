"""Waits until the first member listens, so that the framework's own client need not be refused.

All members are let through at one moment, and rank 0 has a server to start before the others can be
answered. A client that is refused waits longer than that before it tries again: 1 s in gRPC, which JAX
and TensorFlow use (its doc/connection-backoff.md), and up to 1 s in PyTorch's TCPStore. Here it is tried
every ``CONNECT_INTERVAL_S`` seconds, with a connection that says nothing and is closed at once.
"""

from __future__ import annotations

import errno
import select
import struct
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Any

CONNECT_INTERVAL_S = 0.01
MAX_WAIT_S = 1.0
"""Seconds in all. After that, and after any answer but a refusal, the framework meets what there is."""
NO_LINGER = struct.pack("ii", 1, 0)
"""``struct linger``: what is closed leaves nothing behind, socket(7)."""


def first_member_address(declared: dict[str, Any]) -> tuple[str, int] | None:
    """Return where the first member will listen, by what this one declared; None for the first
    itself, and if nobody waits for one address."""
    if not declared.get("rank"):
        return None
    url = str(declared.get("place") or "")
    if declared.get("call") == "MultiWorkerMirroredStrategy":
        cluster = declared.get("cluster") or {}
        url = "tcp://%s" % (cluster.get("chief:0") or cluster.get("worker:0"))
    scheme, _, address_and_path = url.partition("://")
    host, _, port = address_and_path.partition("/")[0].rpartition(":")
    if scheme != "tcp" or not host or not port.isdecimal() or int(port) > 65535:
        return None
    return host.strip("[]"), int(port)


def wait(declared: dict[str, Any], now: Callable[[], float] = time.monotonic) -> None:
    """Returns once it listens, or when there is nothing more to wait for. Raises nothing of its own; what a
    signal handler of the program raises meanwhile is the program's."""
    address = first_member_address(declared)
    until = now() + MAX_WAIT_S
    places = _resolved(address) if address is not None else []
    while places and _is_refused(places, until - now()) and now() < until:
        select.select([], [], [], CONNECT_INTERVAL_S)


def _resolved(address: tuple[str, int]) -> list[Any]:
    """Asked once: the name server has all members of a job to answer. Of a name that is not found, and of an
    address that is none, the framework tells."""
    import socket  # not at the start of every program

    try:
        return socket.getaddrinfo(address[0], address[1], type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError):
        return []


def _is_refused(places: list[Any], seconds: float) -> bool:
    """Return True if somebody is there who refuses, and nobody who answers."""
    import socket

    refused = False
    for family, kind, protocol, _, where in places:
        try:
            with socket.socket(family, kind, protocol) as tried:
                # Its own port may be the one that this worker binds next, socket(7).
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                tried.settimeout(max(CONNECT_INTERVAL_S, seconds))
                met = tried.connect_ex(where)
                if met == 0 and not connected_to_itself(tried):
                    return False
                # 0 that comes to here was a connection to itself: nobody listens yet.
                refused |= met in (0, errno.ECONNREFUSED)
        except OSError as error:
            if error.errno is None:  # of a signal handler: the system's have a number
                raise
    return refused


def connected_to_itself(tried: socket.socket) -> bool:
    """A client whose own port, by chance, is the one that it goes to, on the first member's host: nobody
    listens there. Nor could anybody for a minute, if it were closed as others are (TIME_WAIT)."""
    import socket

    if tried.getsockname() != tried.getpeername():
        return False
    tried.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
    return True
