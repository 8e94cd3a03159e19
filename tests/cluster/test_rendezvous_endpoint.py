"""Whether the place where all meet is on this host, by its addresses."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from allaboard.cluster.rendezvous_endpoint import is_local_address

ABROAD = (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("2001:db8::1", 0, 0, 0))
HERE = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param([HERE], True, id="its own"),
        pytest.param([ABROAD, HERE], True, id="IPv6 is switched off, or that address is gone"),
        pytest.param([ABROAD], False, id="another host's"),
    ],
)
def test_a_name_is_this_hosts_where_one_of_its_addresses_is(
    found: list[Any], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    assert asyncio.run(is_local_address("h0:29500")) is expected


@pytest.mark.parametrize("text", ["", "h0", "h0:x", "[fe80::1]:7", "[[::1]]:7", "a..b:7"])
def test_what_is_no_address_of_any_host_is_not_local(text: str) -> None:
    assert asyncio.run(is_local_address(text)) is False
