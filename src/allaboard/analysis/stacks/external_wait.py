"""Waits for the answer of a process that is no member: a network service, or a child that simulates.

Examples are a reward model behind HTTP, actors in processes of their own, and a job queue. The member is idle
while the other process works, and none of that work is visible here.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import takewhile

from allaboard.facts import Frame
from allaboard.late_pattern import compile_late

_EXTERNAL_WAITS = tuple(
    (compile_late(f"(?:^|/)(?:{file})$"), compile_late(f"(?:{function})$"))
    for file, function in (
        # end of the file's path, function (regular expression)
        (
            r"python3[^/]*/socket\.py",
            "readinto|accept|create_connection|create_server|getaddrinfo|sendfile",
        ),
        (r"python3[^/]*/ssl\.py", "read|recv.*|do_handshake"),
        (r"python3[^/]*/selectors\.py", "select"),
        (r"python3[^/]*/multiprocessing/connection\.py", ".*"),
        (r"python3[^/]*/multiprocessing/synchronize\.py", "wait|wait_for"),
        (r"python3[^/]*/multiprocessing/pool\.py", "wait|get|next"),
        (r"torch/distributed/rpc/.*", "rpc_sync|_invoke_rpc.*|wait_all|to_here|get_"),
        (r"torch/futures/__init__\.py", "wait|value|wait_all"),
        (r"site-packages/(?:grpc|ray|zmq)/.*", ".*"),
    )
)
_EXTERNAL_WAIT_LINE = compile_late(
    r"\.(recv|recv_into|recv_bytes|recvfrom|accept|readline|to_here)\s*\(|\bselect\.select\s*\(|\bos\.read\s*\("
)
"""Source line of a user's frame that waits in C, where no frame of its own is left."""


def awaits_pool(frames: tuple[Frame, ...]) -> bool:
    """Return True if the user's own code waits here for the result of a pool of multiprocessing."""
    inner_frames = takewhile(lambda frame: not frame.is_user, frames)
    return any(
        f.function in ("wait", "get", "next") and f.file.endswith("multiprocessing/pool.py")
        for f in inner_frames
    )


def joins_process(frames: tuple[Frame, ...]) -> bool:
    """Return True if the user's own code waits here for the end of a process of multiprocessing."""
    inner_frames = takewhile(lambda frame: not frame.is_user, frames)
    return any(
        f.function == "join" and f.file.endswith("multiprocessing/process.py") for f in inner_frames
    )


def is_external_wait(frames: tuple[Frame, ...]) -> bool:
    """Return True if the innermost frame of the user's own code calls such a wait. Innermost frame first."""
    for depth, frame in enumerate(frames):
        if frame.is_user:
            return depth == 0 and _EXTERNAL_WAIT_LINE.search(frame.text) is not None
        if _is_external_function(frame.file, frame.function):
            return True
    return False


@lru_cache(maxsize=4096)
def _is_external_function(path: str, name: str) -> bool:
    """Return True if the table lists this function. Cached, since all ranks of a job are in the same few."""
    return any(file.search(path) and function.match(name) for file, function in _EXTERNAL_WAITS)
