"""Which exceptions say that another member went away, and which speak of another connection."""

from __future__ import annotations

import pytest

from allaboard.analysis.failures.lost_peer import has_lost_peer
from allaboard.facts import Frame
from allaboard.facts.samples import USER, ended_member

_LIB = "/v/lib/python3.11"
_C10D = Frame(f"{_LIB}/site-packages/torch/distributed/distributed_c10d.py", 2800, "all_reduce")
_GRAD = Frame(f"{_LIB}/site-packages/torch/autograd/graph.py", 820, "_engine_run_backward")
_TF = Frame(f"{_LIB}/site-packages/tensorflow/python/eager/execute.py", 53, "quick_execute")
_URLLIB3 = Frame(f"{_LIB}/site-packages/urllib3/connection.py", 200, "connect")
_REQUESTS = Frame(f"{_LIB}/site-packages/requests/adapters.py", 700, "send")
_SOCKET = Frame(f"{_LIB}/socket.py", 706, "readinto")
_PIPES = Frame(f"{_LIB}/multiprocessing/connection.py", 383, "_recv")
_GLOO = "[pair.cc:553] Connection closed by peer [127.0.0.1]:18334"


@pytest.mark.parametrize(
    ("type_", "message", "frames"),
    [
        ("RuntimeError", _GLOO, (_C10D, USER)),
        ("RuntimeError", _GLOO, (_GRAD, USER)),
        ("RuntimeError", _GLOO, (USER,)),  # work.wait() is native
        ("RuntimeError", _GLOO, ()),
        ("DistNetworkError", "Connection reset by peer", (_C10D, USER)),
        ("UnavailableError", "Socket closed", (_TF, USER)),
        ("UnavailableError", "tasks are unhealthy (stopped sending heartbeats)", (_TF, USER)),
        ("ConnectionResetError", "[Errno 104] Connection reset by peer", (_PIPES, USER)),
    ],
)
def test_a_peer_went(type_: str, message: str, frames: tuple[Frame, ...]) -> None:
    assert has_lost_peer(ended_member(1, raised=(type_, message), frames=frames))


@pytest.mark.parametrize(
    ("type_", "message", "frames"),
    [
        ("ConnectionError", "Connection refused", (_REQUESTS, USER)),
        ("NewConnectionError", "[Errno 111] Connection refused", (_SOCKET, _URLLIB3, USER)),
        ("ConnectionResetError", "[Errno 104] Connection reset by peer", (_SOCKET, USER)),
        ("BrokenPipeError", "[Errno 32] Broken pipe", (USER,)),
        ("BrokenPipeError", "[Errno 32] Broken pipe", (USER, _C10D, USER)),
        ("KeyError", "'heartbeat'", (USER,)),
        ("RuntimeError", "no column heartbeat", (USER,)),
    ],
)
def test_it_is_its_own_failure(type_: str, message: str, frames: tuple[Frame, ...]) -> None:
    assert not has_lost_peer(ended_member(1, raised=(type_, message), frames=frames))
