"""Streams whose other host has gone without a word (a cable drawn, a machine reset): the kernel finds out.

Only while the roll is called: later a network that pauses for half a minute is survived by the frameworks'
own connections, and then it is not for us to call a host lost.
"""

from __future__ import annotations

import socket

IDLE, EVERY, TIMES = 4, 2, 3
"""Seconds of silence until the kernel asks, seconds between two questions, and how many may stay
unanswered; tcp(7). The kernel of the other host answers, so that a busy or stopped agent is not lost."""
GONE = IDLE + EVERY * TIMES
"""Seconds after which a host that does not answer at all has gone."""
USUALLY = 7200
"""Seconds of silence until Linux asks by itself, tcp(7); a training stream is never silent for so long."""


def lively(sock: socket.socket, on: bool = True) -> None:
    """``on``: from now on; else as usual again. A socket that cannot is left alone."""
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, IDLE if on else USUALLY)
        if on:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, EVERY)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, TIMES)
        # Of what was sent and is not acknowledged, milliseconds; 0: the usual quarter of an hour.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, GONE * 1000 if on else 0)
    except OSError:
        pass
