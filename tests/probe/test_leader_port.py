"""A member that was let through waits for the first one's listener: real sockets, a clock of the test."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from allaboard.probe import leader_port


@pytest.fixture
def closed() -> Iterator[socket.socket]:
    """A port that is ours and refuses until the test listens on it."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        yield one


def told(one: socket.socket, **more: Any) -> dict[str, Any]:
    port = one.getsockname()[1]
    return {"rank": 1, "call": "init_process_group", "place": f"tcp://127.0.0.1:{port}"} | more


class Clock:
    """Goes on by ``step`` each time it is read; ``then`` happens at the reading ``at``."""

    def __init__(self, step: float, at: int = 0, then: Any = None) -> None:
        self.step, self.at, self.then, self.readings = step, at, then, 0

    def __call__(self) -> float:
        self.readings += 1
        if self.readings == self.at:
            self.then()
        return self.readings * self.step


def test_it_goes_on_as_soon_as_somebody_listens(closed: socket.socket) -> None:
    clock = Clock(0.001, 6, closed.listen)
    leader_port.wait(told(closed), clock)
    assert 6 <= clock.readings < 10
    closed.settimeout(5)
    said, _ = closed.accept()
    with said:
        said.settimeout(5)
        assert said.recv(1) == b""


def test_where_nobody_comes_it_is_left_to_the_framework(closed: socket.socket) -> None:
    clock = Clock(0.11)
    leader_port.wait(told(closed), clock)
    assert clock.readings * 0.11 > leader_port.MAX_WAIT_S
    assert clock.readings < 20


@pytest.mark.parametrize(
    "more",
    [
        {"rank": 0},
        {"place": "store"},
        {"place": "file:///tmp/store"},
        {"place": "tcp://nobody"},
        {"place": None},
        {"call": "Server", "place": "", "cluster": {"worker:0": "127.0.0.1:1"}},
        {"call": "MultiWorkerMirroredStrategy", "cluster": {}},
    ],
)
def test_who_has_no_one_address_to_wait_for_does_not_wait(
    closed: socket.socket, more: dict[str, Any]
) -> None:
    clock = Clock(0.001)
    leader_port.wait(told(closed, **more), clock)
    assert clock.readings == 1


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        ({"worker:0": "h0:1", "worker:1": "h1:2"}, ("h0", 1)),
        ({"worker:0": "h0:1", "chief:0": "h9:3"}, ("h9", 3)),
        ({"worker:0": "[fd00::1]:7"}, ("fd00::1", 7)),
    ],
)
def test_of_tensorflow_s_members_the_chief_or_the_first_worker_leads(
    cluster: dict[str, str], expected: tuple[str, int]
) -> None:
    declared = {"rank": 1, "call": "MultiWorkerMirroredStrategy", "cluster": cluster}
    assert leader_port.first_member_address(declared) == expected


def test_an_address_that_is_none_raises_nothing(closed: socket.socket) -> None:
    clock = Clock(0.001)
    leader_port.wait(told(closed, place="tcp://127.0.0.1:99999"), clock)
    assert clock.readings == 1


def test_a_client_that_meets_itself_leaves_the_port_to_who_is_to_listen() -> None:
    with socket.socket() as alone:
        alone.bind(("127.0.0.1", 0))
        where = alone.getsockname()
        alone.connect(where)
        assert leader_port.connected_to_itself(alone)
    with socket.socket() as first:
        first.bind(where)


def test_what_a_signal_handler_raises_meanwhile_is_the_program_s(closed: socket.socket) -> None:
    def late(number: int, frame: object) -> None:
        raise TimeoutError("init took too long")

    before = signal.signal(signal.SIGUSR2, late)
    try:
        clock = Clock(0.001, 6, lambda: signal.raise_signal(signal.SIGUSR2))
        with pytest.raises(TimeoutError, match="too long"):
            leader_port.wait(told(closed), clock)
    finally:
        signal.signal(signal.SIGUSR2, before)
