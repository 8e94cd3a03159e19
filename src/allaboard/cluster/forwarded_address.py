"""Finds out whether an address that is not this host's leads to this host all the same.

Networks translate addresses: NAT in front of a machine, a published port of a container, a virtual address of
a cluster or of a load balancer. The framework on rank 0 just binds its port, so what counts is whether a
connection to the address arrives there.
"""

from __future__ import annotations

import asyncio
import secrets

from allaboard.cluster.transport.client_handshake import (
    HandshakeRefusedError,
    Identity,
    shake_hands,
)
from allaboard.cluster.transport.connect_probe import ConnectResult, connect_and_greet
from allaboard.cluster.transport.listener import Listener, ignore_message, ignore_stranger
from allaboard.cluster.transport.member_connection import MemberConnection
from allaboard.facts import Answer

CONNECT_TIMEOUT_S, GREETING_TIMEOUT_S = 1.0, 1.0
"""Seconds for the two parts of an attempt: rank 0, and all that wait for it, are held meanwhile."""
MAX_ATTEMPTS, RETRY_PAUSE_S = 3, 0.1
"""Attempts while nothing definite is known, and the pause between them."""
INDEFINITE_ANSWERS = (Answer.SILENT, Answer.UNREACHABLE, Answer.MUTE, Answer.CLOSED)
"""Answers that a busy host, or a network that leads no packet back to where it came from, gives as well."""


async def leads_here(address: str, port: int, attempts: int = MAX_ATTEMPTS) -> bool | None:
    """Return True if a connection to ``host:port`` arrives at this port of this host; None if no packet comes
    back, as where a network does not lead its own translated address back to where it came from.

    The port is open meanwhile. Only we know the secret that our listener there has, so that the roll call of
    another host at that address is not taken for it; a caller from elsewhere is turned away and tries again.
    """
    secret = secrets.token_bytes(16)
    listener = Listener("", secret, _close_member, ignore_message, ignore_stranger)
    identity = Identity("", secret, "", -1, "")
    try:
        for _ in range(attempts):
            try:
                if not listener.is_open:
                    await listener.open_port(port)
            except OSError:  # taken just now, maybe by another agent's connection
                await asyncio.sleep(RETRY_PAUSE_S)
                continue
            result = await connect_and_greet(address, CONNECT_TIMEOUT_S, GREETING_TIMEOUT_S)
            is_here = (
                await _is_own_listener(result, identity)
                if result.answer is Answer.ABOARD
                else None
                if result.answer in INDEFINITE_ANSWERS
                else False
            )
            if is_here is not None:
                return is_here
            await asyncio.sleep(RETRY_PAUSE_S)
        return None
    finally:
        listener.close()


async def _is_own_listener(result: ConnectResult, identity: Identity) -> bool | None:
    """Return None if the stream broke off: then it is not known who answered."""
    assert result.writer is not None
    try:
        await shake_hands(result, identity, only_link=True)
    except HandshakeRefusedError:
        return False
    except OSError:
        return None
    finally:
        result.writer.close()
    return True


def _close_member(member: MemberConnection) -> None:
    member.close()
