"""Who waits for the answer of a process that is no member: a service on the network, a child that simulates.

A reward model behind HTTP, actors in processes of their own, a job queue: the member is idle for as long as
the other one works, and nothing of that is seen here.
"""

from __future__ import annotations

import re
from functools import lru_cache

from allaboard.facts import Frame

_EXTERNAL_WAITS = tuple(
    (re.compile(f"(?:^|/)(?:{file})$"), re.compile(f"(?:{function})$"))
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
_EXTERNAL_WAIT_LINE = re.compile(
    r"\.(recv|recv_into|recv_bytes|recvfrom|accept|readline|to_here)\s*\(|\bselect\.select\s*\(|\bos\.read\s*\("
)
"""In the source line of a user's frame, for waits in C that leave no frame of their own."""


def is_external_wait(frames: tuple[Frame, ...]) -> bool:
    """Whether what the innermost frame of the user's own code calls is such a wait."""
    for depth, frame in enumerate(frames):
        if frame.is_user:
            return depth == 0 and _EXTERNAL_WAIT_LINE.search(frame.text) is not None
        if _is_external_function(frame.file, frame.function):
            return True
    return False


@lru_cache(maxsize=4096)
def _is_external_function(path: str, name: str) -> bool:
    """Whether this function is one of the table; the ranks of a job are in the same few."""
    return any(file.search(path) and function.match(name) for file, function in _EXTERNAL_WAITS)
