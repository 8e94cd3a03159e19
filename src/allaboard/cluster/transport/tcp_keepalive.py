"""Streams whose other host has gone without a word (a cable drawn, a machine reset): the kernel finds out.

While the roll is called it ends such a stream. Later the frameworks' own connections survive a network that
pauses for half a minute, and nobody can call anew since the port is the framework's then: so the stream
stays, the kernel goes on asking, and `silent` tells for how long nothing was answered.
"""

from __future__ import annotations

import socket
import struct

PROBE_AFTER_S, PROBE_INTERVAL_S, MAX_PROBES = 4, 2, 3
"""Seconds of silence until the kernel asks, seconds between two questions, and how many may stay
unanswered; tcp(7). The kernel of the other host answers, so that a busy or stopped agent is not lost."""
HOST_LOST_AFTER_S = PROBE_AFTER_S + PROBE_INTERVAL_S * MAX_PROBES
"""Seconds after which a host that does not answer at all has gone."""
PATIENT_PROBE_INTERVAL_S, PATIENT_MAX_PROBES = 7, 127
"""The same of a stream that is to outlast a pause, of a quarter of an hour as for unacknowledged data; no
more than 127 can be asked for."""
HOST_AWAY_AFTER_S = 30.0
"""Seconds without any answer after which a host counts as away while it trains."""
MIN_UNANSWERED_PROBES = 3
"""Questions, or attempts to send, that stayed unanswered meanwhile: where the silence is our own (this
machine was suspended), there are none."""
_INFO = struct.Struct("=2xBB48xII")
"""Of struct tcp_info, linux/tcp.h: retransmits, probes; milliseconds since data and since an acknowledgement
came."""


def set_keepalive(sock: socket.socket, on: bool = True) -> None:
    """``on``: from now on; else patient. A socket that cannot is left alone."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, PROBE_AFTER_S)
        sock.setsockopt(
            socket.IPPROTO_TCP,
            socket.TCP_KEEPINTVL,
            PROBE_INTERVAL_S if on else PATIENT_PROBE_INTERVAL_S,
        )
        sock.setsockopt(
            socket.IPPROTO_TCP, socket.TCP_KEEPCNT, MAX_PROBES if on else PATIENT_MAX_PROBES
        )
        # Of what was sent and is not acknowledged, milliseconds; 0: the usual quarter of an hour.
        sock.setsockopt(
            socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, HOST_LOST_AFTER_S * 1000 if on else 0
        )
    except OSError:
        pass


def silence_seconds(sock: socket.socket) -> float:
    """Seconds for which the kernel of the other host has not answered ours, though it was asked; 0.0 where
    it was not, or where it cannot be known."""
    try:
        return silence_from_tcp_info(
            sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO.size)
        )
    except OSError:
        return 0.0


def silence_from_tcp_info(info: bytes) -> float:
    """The same from a struct tcp_info."""
    if len(info) < _INFO.size:
        return 0.0
    retransmits, probes, data, acknowledged = _INFO.unpack(info[: _INFO.size])
    return (
        min(data, acknowledged) / 1000 if max(retransmits, probes) >= MIN_UNANSWERED_PROBES else 0.0
    )
