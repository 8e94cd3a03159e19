"""Whether an exception says that another member went away, and not that this one failed.

The phrases are those of gloo, NCCL, torch's stores and RPC (TensorPipe), TensorFlow's gRPC and coordination
service, and JAX, as their current releases print them.
"""

from __future__ import annotations

import re

from allaboard.evidence.known_errors import advice
from allaboard.evidence.loader_worker import within_loader
from allaboard.evidence.mismatch import mismatch
from allaboard.evidence.port_taken import lacks_port
from allaboard.facts import Member

_TYPES = {
    "DistNetworkError",
    "DistStoreError",
    "DistBackendError",
    "UnavailableError",
    "AbortedError",
    "DeadlineExceededError",
    "CancelledError",
    "BrokenPipeError",
    "ConnectionResetError",
    "RendezvousTimeoutError",
    "RendezvousConnectionError",
    "RendezvousClosedError",
}
_PHRASES = re.compile(
    r"Read error \[|writev \["
    r"|Connection closed by peer|Connection reset by peer|Broken pipe|Socket closed|Timed out waiting"
    r"|recvBytes|sendBytes|failed to recv|connection was (likely )?closed|Connection refused"
    r"|connectFullMesh failed|wait timeout after|clients? (has )?joined|Wait timeout"
    r"|ncclRemoteError|ncclSystemError|NCCL communicator was aborted|remote process exited"
    r"|(?-i:UNAVAILABLE|DEADLINE_EXCEEDED)|task .* (unavailable|crashed|is unhealthy|has been)"
    r"|heartbeat|Collective ops is aborted|preempted|barrier .* (failed|timed out)"
    r"|Application timeout caused pair closure|CoordinationService"
    r"|Terminating process because the JAX distributed service"
    r"|Watchdog caught collective operation timeout|Process group watchdog thread terminated"
    r"|dump signal due to a collective timeout"
    r"|this error originated at tensorpipe/",
    re.IGNORECASE,
)
"""gRPC's codes in capitals alone: TensorFlow writes of any error "stack traces unavailable"."""


def lost_peer(member: Member) -> bool:
    """Whether what ended this member speaks of a peer: of one that went away, or that called another
    collective, which both suffer from, whoever is wrong."""
    if mismatch(member) is not None:
        return True
    if member.raised is not None:
        if within_loader(member.raised):
            return False  # a worker process of its own DataLoader is no peer
        if lacks_port(member) or advice(member.raised):
            return False  # torch's store and NCCL's group raise the same type for both
        return member.raised.type in _TYPES or bool(_PHRASES.search(member.raised.message))
    return member.exit is not None and bool(_PHRASES.search(member.exit.last_line))
