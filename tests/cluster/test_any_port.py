"""A port of no framework is the same for every address of the host, of both families."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from allaboard.cluster.transport.connect_probe import connect_and_greet
from allaboard.cluster.transport.listener import Listener
from allaboard.facts import Answer
from allaboard.facts.address import join_host_port


@pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="no IPv6 here")
@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_any_free_port_answers_at_addresses_of_both_families(address: str) -> None:
    async def met() -> Answer:
        listener = Listener("", b"", lambda m: None, lambda m, w: None, lambda *k: None)
        await listener.open_port(0)
        try:
            found = await connect_and_greet(join_host_port(address, listener.port))
            if found.writer is not None:
                found.writer.close()
            return found.answer
        finally:
            listener.close()

    if address == "::1":
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError:
            pytest.skip("IPv6 is switched off")
    assert asyncio.run(met()) is Answer.ABOARD
