"""A name that has addresses of two families, one of which this host has no way for."""

from __future__ import annotations

import asyncio
import socket

import pytest

from allaboard.cluster.transport.connect_probe import connect_and_greet
from allaboard.facts import Answer


@pytest.mark.parametrize("turned", [False, True])
def test_the_most_telling_answer_counts(monkeypatch: pytest.MonkeyPatch, turned: bool) -> None:
    with socket.socket() as held:
        held.bind(
            ("127.0.0.1", 0)
        )  # not listening: refused. fe80::1 wants an interface: nothing is sent
        port = held.getsockname()[1]
        found = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)),
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("fe80::1", port, 0, 0)),
        ]

        async def both(*_: object, **__: object) -> list[object]:
            return list(reversed(found)) if turned else list(found)

        async def tried() -> tuple[Answer, str]:
            monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", both)
            met = await connect_and_greet(f"node0:{port}")
            return met.answer, met.numeric_address

        assert asyncio.run(tried()) == (Answer.REFUSED, f"127.0.0.1:{port}")
