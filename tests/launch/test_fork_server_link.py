"""The reaper's end of the process that forks workers, against a socket that a test answers."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from allaboard.launch.fork_server_link import ForkRequest, ForkServerLink
from allaboard.launch.reaper import send_spawn


@pytest.fixture
def ends() -> Iterator[tuple[ForkServerLink, socket.socket]]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    link = ForkServerLink(ours, send_spawn)
    yield link, theirs
    theirs.close()
    ours.close()


def request(worker: int, text: str = "") -> ForkRequest:
    fds = [os.open(os.devnull, os.O_WRONLY) for _ in range(2)]
    message = {"do": "spawn", "worker": worker, "environment": {"A": text}, "folder": "/"}
    return ForkRequest({**message, "command": ["python"]}, fds)


def received(end: socket.socket) -> dict[str, Any]:
    data, fds, _, _ = socket.recv_fds(end, 1 << 16, 3)
    if len(fds) > 2:
        with os.fdopen(fds.pop(), "rb") as file:
            file.seek(0)
            data = file.read()
    for fd in fds:
        os.close(fd)
    message: dict[str, Any] = json.loads(data)
    return message


def answer(end: socket.socket, **message: Any) -> None:
    end.send(json.dumps(message).encode())


def close(*requests: ForkRequest) -> None:
    for each in requests:
        for fd in each.fds:
            os.close(fd)


def test_one_request_at_a_time_each_with_its_pid(
    ends: tuple[ForkServerLink, socket.socket],
) -> None:
    link, server = ends
    first, second = request(0), request(1, "x" * 100_000)
    link.ask(first)
    link.ask(second)
    assert received(server) == {"worker": 0, "environment": {"A": ""}, "folder": "/"}
    server.setblocking(False)
    with pytest.raises(BlockingIOError):
        server.recv(10)
    answer(server, pid=77)
    assert link.take_forked() == [(first, 77)]
    assert len(received(server)["environment"]["A"]) == 100_000, "too long for one datagram"
    answer(server, pid=78)
    assert link.take_forked() == [(second, 78)]
    assert link.is_open and link.take_unserved() == []
    close(first, second)


@pytest.mark.parametrize(("reason", "why"), [("2 threads", "2 threads"), (None, "")])
def test_what_is_not_forked_comes_back(
    ends: tuple[ForkServerLink, socket.socket], reason: str | None, why: str
) -> None:
    link, server = ends
    first, second = request(0), request(1)
    link.ask(first)
    link.ask(second)
    if reason is not None:
        received(server)
        answer(server, unfit=reason)
    server.close()
    assert link.take_forked() == [] and link.why_unfit == why
    assert not link.is_open and link.take_unserved() == [first, second]
    third = request(2)
    link.ask(third)
    assert link.take_unserved() == [third], "asked for after its end"
    close(first, second, third)


def test_a_round_that_ends_forgets_what_was_asked(
    ends: tuple[ForkServerLink, socket.socket],
) -> None:
    link, server = ends
    assert link.drop_asked() == []
    assert link.is_open, "nothing was asked: it serves the next round"
    asked = request(0)
    link.ask(asked)
    assert link.drop_asked() == [0]
    received(server)
    assert server.recv(10) == b"" and link.take_unserved() == []
    with pytest.raises(OSError):
        os.fstat(asked.fds[0])
