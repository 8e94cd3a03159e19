"""TCP keep-alive: lets the kernel detect a host that was lost silently (an unplugged cable, a reset machine).

During the roll call the kernel ends such a stream soon. Later the frameworks' own connections survive a
network pause of half a minute, and nobody can reconnect since the port is the framework's by then: so the
stream stays, the kernel goes on probing, and `silence_seconds` returns for how long nothing was answered.
"""

from __future__ import annotations

import socket
import struct

PROBE_AFTER_S, PROBE_INTERVAL_S, MAX_PROBES = 4, 2, 3
"""Seconds of silence until the first probe, seconds between two probes, and how many may stay unanswered;
tcp(7). The kernel of the other host answers them, so a busy or stopped agent does not count as lost."""
HOST_LOST_AFTER_S = PROBE_AFTER_S + PROBE_INTERVAL_S * MAX_PROBES
"""Seconds after which a host that does not answer at all counts as lost."""
PATIENT_PROBE_INTERVAL_S, PATIENT_MAX_PROBES = 7, 127
"""Probes of a patient stream, which outlasts a pause of a quarter of an hour like unacknowledged data does.
The kernel accepts no more than 127 probes."""
HOST_AWAY_AFTER_S = 30.0
"""Seconds without any answer after which a host counts as away during training."""
MIN_UNANSWERED_PROBES = 3
"""Probes or retransmits that must be unanswered for a silence to count: if this machine itself was suspended
there are none."""
_INFO = struct.Struct("=2xBB48xII")
"""Fields of struct tcp_info, linux/tcp.h: retransmits, probes, milliseconds since the last data and since the
last acknowledgement arrived."""


def set_keepalive(sock: socket.socket, on: bool = True) -> None:
    """Detect a lost host within `HOST_LOST_AFTER_S` (``on``), or be patient. Errors of the socket are
    ignored."""
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
        # Milliseconds for which sent data may stay unacknowledged; 0 means the default, a quarter of an hour.
        sock.setsockopt(
            socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, HOST_LOST_AFTER_S * 1000 if on else 0
        )
    except OSError:
        pass


def silence_seconds(sock: socket.socket) -> float:
    """Return for how many seconds the other host's kernel has not answered ours.

    0.0 if it was not asked, or if that cannot be known.
    """
    try:
        return silence_from_tcp_info(
            sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO.size)
        )
    except OSError:
        return 0.0


def silence_from_tcp_info(info: bytes) -> float:
    """Return the seconds of unanswered silence according to a struct tcp_info."""
    if len(info) < _INFO.size:
        return 0.0
    retransmits, probes, data, acknowledged = _INFO.unpack(info[: _INFO.size])
    return (
        min(data, acknowledged) / 1000 if max(retransmits, probes) >= MIN_UNANSWERED_PROBES else 0.0
    )
