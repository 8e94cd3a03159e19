"""Whose stream outlasts a pause of the network once it trains: also where nobody of that host was held."""

from __future__ import annotations

import asyncio
import socket
import time

from allaboard.cluster.follower import Follower
from allaboard.cluster.leader import Leader
from allaboard.cluster.transport.client_handshake import Identity
from allaboard.cluster.transport.tcp_keepalive import HOST_LOST_AFTER_S
from allaboard.protocol.commands import OpenGate


def test_a_server_s_host_is_waited_for_when_the_chief_alone_was_held() -> None:
    asyncio.run(_trains())


async def _trains() -> None:
    leader = Leader("job=1", b"", "tensorflow", lambda: None)
    await leader.listener.open_port(0)

    async def address() -> str:
        return f"127.0.0.1:{leader.listener.port}"

    who = Identity("job=1", b"", "h3", 3, "127.0.0.1:1", "session")
    follower = Follower(address, lambda: who, lambda: None, lambda: None)
    running = asyncio.ensure_future(follower.run_calls())
    try:
        async with asyncio.timeout(20):
            while not (leader.connected_count and follower.is_linked):
                await asyncio.sleep(0.01)
            (member,) = leader.followers.members.values()
            assert follower._writer is not None and member.stream._sock is not None
            ours, theirs = member.stream._sock, follower._writer.get_extra_info("socket")
            assert _bound(ours) == _bound(theirs) == HOST_LOST_AFTER_S
            leader.route_command(OpenGate(pid=1, round=1))  # the chief's, which runs here
            leader.send_due(time.monotonic())
            while _bound(theirs):
                await asyncio.sleep(0.01)
            assert _bound(ours) == 0
    finally:
        running.cancel()
        follower.close()
        leader.close()


def _bound(sock: socket.socket) -> float:
    """Seconds without an acknowledgement after which the kernel ends the stream; 0: the usual quarter of an
    hour."""
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) / 1000
