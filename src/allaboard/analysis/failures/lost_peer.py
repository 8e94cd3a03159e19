"""Exceptions that say that another member went away, not that this one failed.

The phrases are those of gloo, NCCL, torch's stores and RPC (TensorPipe), TensorFlow's gRPC and coordination
service, and JAX, as their current releases print them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from allaboard.analysis.failures.dataloader_worker import is_raised_in_loader
from allaboard.analysis.failures.known_errors import known_error_advice
from allaboard.analysis.failures.mismatch_errors import find_mismatch_error
from allaboard.analysis.failures.port_in_use import failed_on_taken_port
from allaboard.facts import ChainedException, Evidence, Member, Raised
from allaboard.late_pattern import compile_late

_PEER_ERROR_TYPES = {
    "DistNetworkError",
    "DistStoreError",
    "DistBackendError",
    "UnavailableError",
    "AbortedError",
    "DeadlineExceededError",
    "CancelledError",
    "BrokenPipeError",
    "ConnectionResetError",
    "HorovodInternalError",
    "RendezvousTimeoutError",
    "RendezvousConnectionError",
    "RendezvousClosedError",
}
_AMBIGUOUS_TYPES = {"DistBackendError", "CancelledError", "AbortedError", "HorovodInternalError"}
"""Those of them that are also raised for failures of this process."""
_PEER_LOSS_PHRASES = compile_late(
    r"Read error \[|writev \["
    r"|Connection closed by peer|Connection reset by peer|Broken pipe|Socket closed|Timed out waiting"
    r"|recvBytes|sendBytes|failed to recv|connection was (likely )?closed|Connection refused"
    r"|/pair\.cc:\d+\] connect \["
    r"|connectFullMesh failed|wait timeout after|clients? (has )?joined|Wait timeout"
    r"|ncclRemoteError|ncclSystemError|NCCL communicator was aborted|remote process exited"
    r"|(?-i:UNAVAILABLE|DEADLINE_EXCEEDED)|task .* (unavailable|crashed|is unhealthy|has been)"
    r"|(stopped sending|send|sending|missed|missing|no) heartbeats?|heartbeats? (timeout|timed out|failed)"
    r"|HeartbeatMonitor|(task|worker|process)[^\n]{0,80} preempted"
    r"|Collective ops is aborted|barrier .* (failed|timed out)"
    r"|Application timeout caused pair closure|CoordinationService"
    r"|Terminating process because the JAX distributed service"
    r"|Watchdog caught collective operation timeout|Process group watchdog thread terminated"
    r"|dump signal due to a collective timeout"
    r"|MPI_ERR_(?:OTHER: known error not in list|PROC_FAILED|UNREACH)"
    r"|received errors while waiting for send/recv|failed to pass monitoredBarrier"
    r"|enforce sendop failed"
    r"|this error originated at tensorpipe/|with a different incarnation|Horovod has been shut down",
    re.IGNORECASE,
)
"""gRPC's codes count in capitals only: TensorFlow writes "stack traces unavailable" about any error."""

_OWN_NCCL_ERROR = compile_late(
    r"^nccl(?:InvalidUsage|InvalidArgument|UnhandledCudaError)\b(?!.*message truncated)",
    re.MULTILINE | re.DOTALL,
)
"""NCCL's codes for what is wrong in the process itself: its GPUs, its interfaces, its arguments. Under the
first of them it also reports that a peer sent more than this process expects."""

_ENGINE_FILES = compile_late(
    r"/(torch|torch_xla|torch_npu|tensorflow|tensorflow_core|keras|tf_keras|jax|jaxlib|grpc|horovod|deepspeed"
    r"|vllm|sglang|megatron|paddle|mxnet|byteps|accelerate|lightning|pytorch_lightning|allaboard)/"
    r"|^mpi4py/"  # Cython names it without its folder
    r"|/bin/(torchrun|accelerate|deepspeed|horovodrun)$"
)
"""Paths of the code that uses the job's own connections, and of our hooks around it."""
_OWN_ERROR_TYPES = {
    "AssertionError",
    "AttributeError",
    "FileNotFoundError",
    "ImportError",
    "IndexError",
    "KeyError",
    "ModuleNotFoundError",
    "NameError",
    "TypeError",
    "UnboundLocalError",
    "ZeroDivisionError",
}
"""Exceptions that no framework raises about a peer."""
_SOCKET_ERROR_TYPES = {
    "BrokenPipeError",
    "ConnectionAbortedError",
    "ConnectionError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "TimeoutError",
}
"""Python's own exceptions about any pipe or socket."""


def _is_other_connection(raised: Raised) -> bool:
    """Return True if the exception is about a connection that is not the job's own.

    Examples are a database, a web server, or a child program. The innermost frame outside the standard
    library tells who raised it.
    """
    if raised.type in _OWN_ERROR_TYPES:
        return True
    raising_frame = next((f for f in raised.frames if not f.is_standard_library), None)
    if raising_frame is None or _ENGINE_FILES.search(raising_frame.file.replace("\\", "/")):
        return False
    if not raising_frame.is_user:
        return True
    # Native code of a framework is called from user code, too, but does not raise Python's socket errors.
    # Ranks that are parent and child of each other share pipes of multiprocessing: those are the job's own.
    by_multiprocessing = any("/multiprocessing/" in f.file for f in raised.frames)
    return raised.type in _SOCKET_ERROR_TYPES and not by_multiprocessing


def mentions_lost_peer(raised: Raised) -> bool:
    """Return True if the words of the exception are those of a peer that went away, or did not come."""
    if _PEER_LOSS_PHRASES.search(raised.message):
        return True
    return raised.type in _PEER_ERROR_TYPES and not _OWN_NCCL_ERROR.search(raised.message)


def states_lost_peer(raised: Raised) -> bool:
    """Return True if the exception itself says that a peer went away, and is not only of a type for that."""
    return raised.type not in _AMBIGUOUS_TYPES or bool(_PEER_LOSS_PHRASES.search(raised.message))


def peer_loss_before(raised: Raised) -> ChainedException | None:
    """Return the exception of its chain that says that a peer went away; None if none does."""
    return next((c for c in raised.chain if _is_peer_loss(c)), None)


def _is_peer_loss(chained: ChainedException) -> bool:
    error = Raised(type=chained.type, message=chained.message, raised_at=0.0, frames=chained.frames)
    return (
        not known_error_advice(error)
        and not _is_other_connection(error)
        and mentions_lost_peer(error)
    )


def peer_loss_message(member: Member) -> str:
    """Return what the exception of a member that has lost a peer says of that; "" if it raised none."""
    if member.raised is None:
        return ""
    loss = peer_loss_before(member.raised)
    is_cause = loss is not None and loss.is_cause
    return loss.message if loss is not None and is_cause else member.raised.message


def has_lost_peer(member: Member) -> bool:
    """Return True if what ended this member mentions a peer that went away or called another collective.

    Both sides suffer from different collectives, whichever of them is wrong.
    """
    if find_mismatch_error(member) is not None:
        return True
    if member.raised is not None:
        if is_raised_in_loader(member.raised):
            return False  # a worker process of its own DataLoader is no peer
        if failed_on_taken_port(member):
            return False
        if (loss := peer_loss_before(member.raised)) is not None and loss.is_cause:
            return True  # what a trainer makes of it is its own exception
        if known_error_advice(member.raised):
            return False  # torch's store and NCCL's group raise the same type for both
        if _is_other_connection(member.raised):
            return False
        return mentions_lost_peer(member.raised)
    return member.exit is not None and bool(_PEER_LOSS_PHRASES.search(member.exit.last_line))


MAX_SHOWN_CHARS = 120
"""Characters that are shown of the message of such an exception."""
MAX_SHOWN = 2
"""Different exceptions of that kind that are shown."""


def failed_in_handler(member: Member) -> bool:
    """Return True if the member's exception was raised from the loss of a peer, or while that was handled."""
    return member.raised is not None and peer_loss_before(member.raised) is not None


def aftermath_evidence(members: Iterable[Member]) -> tuple[Evidence, ...]:
    """Return what else these members, which have lost a peer, raised while they handled that.

    It may be a second fault, as a disk that is full when an emergency checkpoint is written.
    """
    evidence: dict[str, Evidence] = {}
    for member in members:
        error = member.raised
        loss = peer_loss_before(error) if error is not None else None
        if error is None or loss is None or loss.is_cause:
            continue  # nothing else, or only the same under another name
        first_line = error.message.partition("\n")[0][:MAX_SHOWN_CHARS]
        place = f" at {error.where}" if error.where is not None else ""
        text = f"{error.type}: {first_line}{place}"
        observed = f"{member.who.name} then raised {text}"
        evidence.setdefault(text, Evidence(observed, "while it handled that"))
    return tuple(evidence.values())[:MAX_SHOWN]
